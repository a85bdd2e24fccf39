//! stub
use serde_json::Value;
#[derive(Debug)]
pub struct JsonPath(Vec<String>);
impl JsonPath { pub fn parse(t:&str)->Result<Self,String>{Ok(Self(t.trim_matches(|c|c=='{'||c=='}'||c=='.').split('.').map(str::to_owned).collect()))}
 pub fn find<'a>(&self,v:&'a Value)->Result<Vec<Vec<&'a Value>>,String>{let mut v=v; for p in &self.0 { match v.get(p){Some(x)=>v=x,None=>return Ok(vec![])} } Ok(vec![vec![v]])}}
pub fn print(v:&[&Value])->String{ v.iter().map(|x| x.as_str().map(str::to_owned).unwrap_or_else(||x.to_string())).collect::<Vec<_>>().join(",") }
