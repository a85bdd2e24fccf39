//! Every package is called through the table, as the evaluator does.

use std::sync::Arc;

use super::{package, parse_json, parse_yaml, paths, write_json, write_yaml};
use crate::value::{Failure, Host, Kind, Value};

/// A host without an evaluation: every value is plain already.
struct Plain;

impl Host for Plain {
    fn matches(&mut self, data: &Value, schema: &Value) -> Result<(), String> {
        if data == schema {
            Ok(())
        } else {
            Err("conflicting values".to_owned())
        }
    }

    fn matches_partially(&mut self, data: &Value, schema: &Value) -> Result<(), String> {
        self.matches(data, schema)
    }

    /// Reads the template as the name of a field to compare by.
    fn apply(
        &mut self,
        template: &Value,
        fields: &[(&str, &Value)],
        _: &str,
    ) -> Result<Value, Failure> {
        let Value::String(label) = template else {
            return Err(Failure::error("no comparator"));
        };
        let keys: Vec<String> = fields
            .iter()
            .filter_map(|(_, value)| value.field(label))
            .map(write_json)
            .collect();
        Ok(Value::Bool(keys[0] < keys[1]))
    }

    fn output_limit(&self) -> usize {
        1 << 16
    }

    fn work(&mut self, _: usize) -> Result<(), Failure> {
        Ok(())
    }

    fn elements(&mut self, list: &Value) -> Option<Vec<Value>> {
        match list {
            Value::List(items) => Some(items.to_vec()),
            _ => None,
        }
    }

    fn fields(&mut self, structure: &Value) -> Option<Vec<(Arc<str>, Value)>> {
        match structure {
            Value::Struct(fields) => Some(fields.to_vec()),
            _ => None,
        }
    }

    fn concrete(&mut self, value: &Value) -> Result<Value, Failure> {
        Ok(value.clone())
    }

    fn is_open(&mut self, value: &Value) -> bool {
        matches!(value, Value::Struct(_))
    }

    fn show(&mut self, value: &Value) -> String {
        write_json(value)
    }
}

fn call(name: &str, arguments: &str) -> Result<Value, Failure> {
    let (path, function) = name.rsplit_once('.').expect("package.Function");
    let package = package(path).unwrap_or_else(|| panic!("no package {path}"));
    let builtin = package
        .functions
        .iter()
        .find(|builtin| builtin.name == function)
        .unwrap_or_else(|| panic!("no function {name}"));
    let Value::List(arguments) = parse_json(&format!("[{arguments}]")).expect(arguments) else {
        panic!("arguments are a list")
    };
    let mut arguments = arguments.to_vec();
    for param in builtin.params.iter().skip(arguments.len()) {
        arguments.push(Value::string(param.default.expect("too few arguments")));
    }
    for (argument, param) in arguments.iter().zip(builtin.params) {
        assert!(
            param.kind.contains(argument.kind()),
            "{name}: {argument:?} is not {}",
            param.kind
        );
    }
    let result = (builtin.call)(&mut Plain, &arguments);
    if let Ok(value) = &result
        && builtin.result != Kind::TOP
    {
        assert!(
            builtin.result.contains(value.kind()),
            "{name} returned {value:?}"
        );
    }
    result
}

#[track_caller]
fn check(name: &str, arguments: &str, expected: &str) {
    match call(name, arguments) {
        Ok(value) => assert_eq!(write_json(&value), expected, "{name}({arguments})"),
        Err(failure) => panic!("{name}({arguments}): {failure:?}"),
    }
}

#[track_caller]
fn check_failure(name: &str, arguments: &str, expected: &str) {
    match call(name, arguments) {
        Ok(value) => panic!("{name}({arguments}) returned {value:?}"),
        Err(
            Failure::Error(message)
            | Failure::Incomplete(message)
            | Failure::Unsatisfied(message)
            | Failure::UnsatisfiedYet(message),
        ) => assert_eq!(message, expected, "{name}({arguments})"),
    }
}

#[test]
fn packages_are_found_by_path() {
    assert!(package("strings").is_some());
    assert!(package("encoding/json").is_some());
    assert!(package("no/such").is_none());
    assert_eq!(paths().count(), 26);
}

#[test]
fn strings_are_cut_joined_and_searched() {
    check(
        "strings.SplitAfter",
        r#""a,b,c", ",""#,
        r#"["a,","b,","c"]"#,
    );
    check("strings.Split", r#""abc", """#, r#"["a","b","c"]"#);
    check("strings.Split", r#""", ",""#, r#"[""]"#);
    check("strings.SplitN", r#""a,b,c", ",", 2"#, r#"["a","b,c"]"#);
    check("strings.SplitN", r#""a,b", ",", 0"#, "[]");
    check(
        "strings.Replace",
        r#""oink oink oink", "k", "ky", 2"#,
        r#""oinky oinky oink""#,
    );
    check("strings.Replace", r#""ab", "", "-", -1"#, r#""-a-b-""#);
    check("strings.ToUpper", r#""straße""#, r#""STRAßE""#);
    check(
        "strings.ToTitle",
        r#""hello wide world""#,
        r#""Hello Wide World""#,
    );
    check("strings.ToCamel", r#""Hello World""#, r#""hello world""#);
    check("strings.LastIndexAny", r#""go gopher", "go""#, "4");
    check("strings.Index", r#""chicken", "dmr""#, "-1");
    check("strings.Count", r#""five", """#, "5");
    check("strings.Fields", r#""  a b  c ""#, r#"["a","b","c"]"#);
    check("strings.Join", r#"["a","b"], "-""#, r#""a-b""#);
    check("strings.ByteAt", r#""abc", 1"#, "98");
    check("strings.SliceRunes", r#""héllo", 1, 3"#, r#""él""#);
    check("strings.MinRunes", r#""héé", 3"#, "true");
    check("strings.Runes", r#""é""#, "[233]");
    check("strings.TrimPrefix", r#""prefix-x", "prefix-""#, r#""x""#);
    check_failure("strings.ByteAt", r#""abc", 3"#, "index out of range");
    check_failure(
        "strings.Repeat",
        r#""a", -1"#,
        "strings: negative Repeat count",
    );
    check_failure(
        "strings.Repeat",
        r#""abc", 1000000"#,
        "evaluation limit exceeded: builtin output of more than 65536",
    );
    check_failure(
        "strings.Join",
        r#"[1], ",""#,
        "invalid list element 0 in argument 0 to call: cannot use value 1 (int) as string",
    );
}

#[test]
fn lists_are_rearranged_measured_and_sorted() {
    check("list.Concat", "[[1,2],[],[3]]", "[1,2,3]");
    check("list.FlattenN", "[1,[2,[3,[4]]]], 1", "[1,2,[3,[4]]]");
    check("list.FlattenN", "[1,[2,[3,[4]]]], -1", "[1,2,3,4]");
    check("list.Repeat", "[1,2], 2", "[1,2,1,2]");
    check("list.Repeat", "[], 1000000000000000000", "[]");
    check("list.Take", "[1,2,3], 5", "[1,2,3]");
    check("list.Drop", "[1,2,3], 2", "[3]");
    check("list.Slice", "[1,2,3,4], 1, 3", "[2,3]");
    check("list.Reverse", "[1,2,3]", "[3,2,1]");
    check("list.Range", "0, 5, 2", "[0,2,4]");
    check("list.Range", "0, 1, 0.5", "[0,0.5]");
    check("list.Sum", "[1,2,3.5,0.5]", "7");
    check("list.Avg", "[1,2,3,4]", "2.5");
    check("list.Max", "[1,3,2]", "3");
    check("list.Min", "[1,3,0.5]", "0.5");
    check("list.Product", "[]", "1");
    check(
        "list.Contains",
        "[1,{\"a\":1,\"b\":2}], {\"b\":2,\"a\":1}",
        "true",
    );
    check(
        "list.Sort",
        r#"[{"a":3},{"a":1},{"a":2}], "a""#,
        r#"[{"a":1},{"a":2},{"a":3}]"#,
    );
    check("list.IsSorted", r#"[{"a":1},{"a":1}], "a""#, "true");
    check("list.SortStrings", r#"["b","a"]"#, r#"["a","b"]"#);
    check("list.UniqueItems", "[1,2,1.0]", "true");
    check("list.MatchN", "[1,2,1], 2, 1", "true");
    check_failure(
        "list.UniqueItems",
        "[1,2,1]",
        "equal value (1) at position 0 and 2",
    );
    check_failure("list.MinItems", "[1], 2", "len(list) < MinItems(2) (1 < 2)");
    check_failure(
        "list.MaxItems",
        "[1,2], 1",
        "len(list) > MaxItems(1) (2 > 1)",
    );
    check_failure("list.Max", "[]", "empty list");
    check_failure("list.Range", "0, 5, 0", "step must be non zero");
    check_failure("list.Slice", "[1], 0, 2", "slice bounds out of range");
    check_failure(
        "list.Concat",
        "[1]",
        "cannot use value 1 (type int) as list",
    );
}

#[test]
fn numbers_are_parsed_and_formatted() {
    check("strconv.FormatInt", "255, 16", r#""ff""#);
    check("strconv.FormatInt", "123456, 62", r#""w7e""#);
    check("strconv.FormatFloat", "3.14159, 102, 2, 64", r#""3.14""#);
    check(
        "strconv.FormatFloat",
        "1234567.0, 103, -1, 64",
        r#""1.234567e+06""#,
    );
    check("strconv.FormatFloat", "0.00001, 103, -1, 64", r#""1e-05""#);
    check("strconv.FormatFloat", "100, 101, -1, 64", r#""1e+02""#);
    check(
        "strconv.FormatFloat",
        "123456789, 103, 4, 64",
        r#""1.235e+08""#,
    );
    check("strconv.FormatFloat", "0.1, 102, -1, 32", r#""0.1""#);
    check("strconv.ParseInt", r#""-0x1F", 0, 64"#, "-31");
    check("strconv.ParseInt", r#""1_000", 0, 64"#, "1000");
    check("strconv.ParseFloat", r#""1e3", 64"#, "1E+3");
    check("strconv.Atoi", r#""-42""#, "-42");
    check("strconv.ParseBool", r#""T""#, "true");
    check(
        "strconv.Quote",
        r#""a\tbé\u200b\"""#,
        r#""\"a\\tbé\\u200b\\\"\"""#,
    );
    check("strconv.QuoteToASCII", r#""é""#, r#""\"\\u00e9\"""#);
    check("strconv.Unquote", r#""\"a\\nb\"""#, r#""a\nb""#);
    check_failure(
        "strconv.Atoi",
        r#""x""#,
        "strconv.Atoi: parsing \"x\": invalid syntax",
    );
    check_failure(
        "strconv.ParseInt",
        r#""300", 10, 8"#,
        "strconv.ParseInt: parsing \"300\": value out of range",
    );
}

#[test]
fn mathematics_keeps_decimals_where_the_reference_does() {
    check("math.Jacobi", "1001, 9907", "-1");
    check("math.Floor", "-2.5", "-3");
    check("math.Round", "2.5", "3");
    check("math.RoundToEven", "2.5", "2");
    check("math.Abs", "-5.0", "5");
    check("math.Pow", "2, 0.5", "1.414213562373095048801688724209698");
    check("math.Log2", "10", "3.32192809488736234787031942948939");
    check("math.Cbrt", "27", "3");
    check("math.Sqrt", "2", "1.4142135623730951");
    check("math.MultipleOf", "9, 3", "true");
    check("math.Pow10", "3", "1000");
    check("math/bits.Clear", "15, 5", "10");
    check("math/bits.Set", "0, 5, 1", "32");
    check("math/bits.Len", "255", "8");
    check("math/bits.And", "-1, 6", "6");
    let Ok(Value::Number(inverse)) = call("math.Erfinv", "0.5") else {
        panic!("a number")
    };
    assert!((inverse.to_f64() - 0.476_936_276_204_469_9).abs() < 1e-15);
}

#[test]
fn addresses_and_urls_are_checked() {
    check("net.SplitHostPort", r#""[::1]:80""#, r#"["::1","80"]"#);
    check("net.JoinHostPort", r#""::1", 80"#, r#""[::1]:80""#);
    check("net.PathEscape", r#""a b/c+d""#, r#""a%20b%2Fc+d""#);
    check(
        "net.QueryEscape",
        r#""a b/c+d&é""#,
        r#""a+b%2Fc%2Bd%26%C3%A9""#,
    );
    check("net.QueryUnescape", r#""a+b%2Fc""#, r#""a b/c""#);
    check("net.IPv4", r#""1.2.3.4""#, "true");
    check("net.IPv4", r#""::1""#, "false");
    check("net.LoopbackIP", "[127,0,0,1]", "true");
    check("net.IPString", "[1,2,3,4]", r#""1.2.3.4""#);
    check("net.IPCIDR", r#""10.0.0.0/8""#, "true");
    check("net.FQDN", r#""foo.example.com.""#, "true");
    check("net.FQDN", r#""-a.b""#, "false");
    check("net.URL", r#""https://example.com:80/a?b=c#d""#, "true");
    check("net.AbsURL", r#""https://example.com""#, "true");
    check_failure("net.AbsURL", r#""/a""#, "URL is not absolute");
    check_failure("net.PathUnescape", r#""%zz""#, "invalid URL escape \"%zz\"");
    check_failure("net.ParseIP", r#""1.2.3""#, "invalid IP address \"1.2.3\"");
}

#[test]
fn times_follow_layouts() {
    check("time.FormatDuration", "5410000000000", r#""1h30m10s""#);
    check("time.ParseDuration", r#""1h2m3.5s""#, "3723500000000");
    check(
        "time.Parse",
        r#""Mon Jan _2 15:04:05 2006", "Thu Feb  4 21:00:57 2010""#,
        r#""2010-02-04T21:00:57Z""#,
    );
    check(
        "time.FormatString",
        r#""Monday, 02-Jan-06 15:04:05 MST", "2019-01-02T15:04:05.123Z""#,
        r#""Wednesday, 02-Jan-19 15:04:05 UTC""#,
    );
    check(
        "time.FormatString",
        r#""Jan _2 06 03:04PM .000 MST -07:00", "2019-01-02T15:04:05.123+02:00""#,
        r#""Jan  2 19 03:04PM .123 +0200 +02:00""#,
    );
    check(
        "time.Unix",
        "1500000000, 123",
        r#""2017-07-14T02:40:00.000000123Z""#,
    );
    check(
        "time.Parse",
        r#""02 Jan 06 15:04 -0700", "02 Jan 06 15:04 -0700""#,
        r#""2006-01-02T22:04:00Z""#,
    );
    check("time.Time", r#""2019-01-02T15:04:05Z""#, "true");
    check_failure(
        "time.Time",
        r#""2019-02-30T15:04:05Z""#,
        "invalid time \"2019-02-30T15:04:05Z\"",
    );
    check_failure(
        "time.Duration",
        r#""5""#,
        "time: missing unit in duration \"5\"",
    );
}

#[test]
fn paths_know_three_systems() {
    check("path.Join", r#"["a","../b","c"]"#, r#""b/c""#);
    check("path.Join", r#"["c:","a","..","b"], "windows""#, r#""c:b""#);
    check("path.Dir", r#""/a/b/c""#, r#""/a/b""#);
    check("path.Rel", r#""/a/b","/a/c/d""#, r#""../c/d""#);
    check("path.Match", r#""*.go", "a.go""#, "true");
    check("path.Match", r#""*.go", "b/a.go""#, "false");
    check("path.Match", r#""[a-c]?x", "bqx""#, "true");
    check("path.Ext", r#""a/b.tar.gz""#, r#"".gz""#);
    check("path.Base", r#""/a/b/""#, r#""b""#);
    check("path.Clean", r#""/a/../../b//c/.""#, r#""/b/c""#);
    check("path.IsAbs", r#""c:\\x", "windows""#, "true");
    check_failure("path.Match", r#""[", "a""#, "syntax error in pattern");
}

#[test]
fn encodings_round_trip() {
    check(
        "encoding/base64.Encode",
        r#"null, "hello""#,
        r#""aGVsbG8=""#,
    );
    check(
        "encoding/base64.Decode",
        r#"null, "aGVsbG8=""#,
        r#""aGVsbG8=""#,
    );
    check("encoding/hex.Encode", r#""hi""#, r#""6869""#);
    check(
        "encoding/json.Marshal",
        r#"{"a":"<&","b":1.50}"#,
        r#""{\"a\":\"<&\",\"b\":1.50}""#,
    );
    check(
        "encoding/json.Unmarshal",
        r#""{\"b\":1,\"a\":[1.0]}""#,
        r#"{"b":1,"a":[1.0]}"#,
    );
    check(
        "encoding/json.Indent",
        r#""{\"a\":[1,{}]}", "", "  ""#,
        r#""{\n  \"a\": [\n    1,\n    {}\n  ]\n}""#,
    );
    check(
        "encoding/json.Compact",
        r#""{ \"a b\" : 1 }""#,
        r#""{\"a b\":1}""#,
    );
    check(
        "encoding/csv.Encode",
        r#"[[1,"a,b"],["x\"y",true]]"#,
        r#""1,\"a,b\"\n\"x\"\"y\",true\n""#,
    );
    check(
        "encoding/csv.Decode",
        r#""a,b\n\"c\"\"d\",e\n""#,
        r#"[["a","b"],["c\"d","e"]]"#,
    );
    check("html.Escape", r#""<'&""#, r#""&lt;&#39;&amp;""#);
    check(
        "html.Unescape",
        r#""&lt;&#39;&amp;&eacute;&bad;""#,
        r#""<'&é&bad;""#,
    );
    check_failure("encoding/json.Unmarshal", r#""{""#, "json: invalid JSON");
    check_failure(
        "encoding/base64.Decode",
        r#"null, "a""#,
        "illegal base64 data at input byte 0",
    );
}

#[test]
fn toml_is_read_and_written() {
    check(
        "encoding/toml.Marshal",
        r#"{"a":1,"c":{"d":[1,2],"e":{"f":1.5}},"g":[{"h":1},{"h":2}],"s":"it's"}"#,
        r#""a = 1\ns = \"it's\"\n\n[c]\nd = [1, 2]\n\n[c.e]\nf = 1.5\n\n[[g]]\nh = 1\n\n[[g]]\nh = 2\n""#,
    );
    check(
        "encoding/toml.Unmarshal",
        r#""a = 1\n[b]\nc = 'x'\nd = [1, 2.5]\n[[f]]\ng = true\n[f.h]\ni = 1979-05-27T07:32:00Z\n[[f]]\ng = {x.y = 1}\n""#,
        r#"{"a":1,"b":{"c":"x","d":[1,2.5]},"f":[{"g":true,"h":{"i":"1979-05-27T07:32:00Z"}},{"g":{"x":{"y":1}}}]}"#,
    );
    check_failure(
        "encoding/toml.Unmarshal",
        r#""a = 1\na = 2\n""#,
        "toml: line 2 (last key \"a\"): Key 'a' has already been defined.",
    );
}

#[test]
fn digests_and_names_match_published_values() {
    check(
        "uuid.SHA1",
        r#""6ba7b810-9dad-11d1-80b4-00c04fd430c8", "example.com""#,
        r#""cfbff0d1-9375-5685-968c-48ce8b15ae17""#,
    );
    check(
        "uuid.Version",
        r#""cfbff0d1-9375-5685-968c-48ce8b15ae17""#,
        "5",
    );
    check("crypto/md5.Sum", r#""""#, r#""1B2M2Y8AsgTpgAmY7PhCfg==""#);
    check(
        "crypto/hmac.Sign",
        r#""SHA256", "key", "data""#,
        r#""UDH+PZicbRU3oBP6bnOdojRj/a7DtwE32Cjjas4iG9A=""#,
    );
    check_failure("uuid.Parse", r#""x""#, "invalid UUID length: 1");
}

#[test]
fn templates_run_over_plain_data() {
    let data = r#"{"l":[{"n":"a"},{"n":"bb"}],"m":{"k":"v"},"f":1.5,"i":42}"#;
    let run = |template: &str, expected: &str| {
        let mut quoted = String::from("[");
        quoted.push_str(&write_json(&Value::string(template)));
        check(
            "text/template.Execute",
            &format!("{}, {data}", &quoted[1..]),
            &write_json(&Value::string(expected)),
        );
    };
    run("{{.f}} {{.m}} {{.l}}", "1.5 map[k:v] [map[n:a] map[n:bb]]");
    run(
        "{{range $i, $e := .l}}{{if $i}}, {{end}}{{$e.n | printf \"%q\"}}={{len $e.n}}{{else}}none{{end}}",
        "\"a\"=1, \"bb\"=2",
    );
    run("a {{- /* c */ -}} b{{with .m}}{{.k}}{{end}}", "abv");
    run(
        "{{printf \"%d|%5d|%-5s|%05.1f\" .i .i \"ab\" .f}}",
        "42|   42|ab   |001.5",
    );
    run(
        "{{define \"x\"}}<{{.}}>{{end}}{{template \"x\" .i}}",
        "<42>",
    );
    run("{{if and .i (eq .f 1.5)}}y{{else if .m}}z{{end}}", "y");
    run("{{index .l 1 \"n\"}} {{.missing}}", "bb <no value>");
    check_failure(
        "text/template.Execute",
        r#""{{.a", 1"#,
        "template: :1: unclosed action",
    );
    check(
        "text/tabwriter.Write",
        r#""a\tbbb\tc\naaaa\tb\tccccc\nx""#,
        r#""a    bbb c\naaaa b   ccccc\nx""#,
    );
}

#[test]
fn fields_are_counted() {
    check("struct.MinFields", r#"{"a":1}, 1"#, "true");
    check_failure(
        "struct.MaxFields",
        r#"{"a":1}, 0"#,
        "len(fields) > MaxFields(0) (1 > 0)",
    );
}

#[test]
fn yaml_text_is_laid_out_like_the_reference() {
    let value = parse_json(
        r##"{"a":1,"b":[1,{"x":1,"y":2},[3,4]],"c":"true","d":"multi\nline\n","e":"multi\nline","f":"",
        "g":null,"i":"1","j":"a: b","k":"#x","l":{},"m":[],"o":"2020-01-01","p":" x","r":"it's",
        "s":"\"q\"","t":"tab\tx","z":"-","aa":"- a","ae":"x:y","an":"a,b","bb":"<<","bd":"\n\na\n",
        "bg":"a\n\n","be":"  lead\nx","bf":"trail \nx","bo":"12:30:45","bp":"a\r\nb"}"##,
    )
    .unwrap();
    let expected = "\
a: 1
b:
  - 1
  - x: 1
    \"y\": 2
  - - 3
    - 4
c: \"true\"
d: |
  multi
  line
e: |-
  multi
  line
\"f\": \"\"
g: null
i: \"1\"
j: 'a: b'
k: '#x'
l: {}
m: []
o: \"2020-01-01\"
p: ' x'
r: it's
s: '\"q\"'
\"t\": \"tab\\tx\"
z: '-'
aa: '- a'
ae: x:y
an: a,b
bb: <<
bd: |2


  a
bg: |+
  a

be: |2-
    lead
  x
bf: \"trail \\nx\"
bo: \"12:30:45\"
bp: \"a\\r\\nb\"
";
    assert_eq!(write_yaml(&value), expected);
}

#[test]
fn yaml_is_read_with_anchors_tags_and_merges() {
    let source = "
base: &base {a: 1, b: 0x10}
copy:
  <<: *base
  b: 2
text: |
  x
  y
list: [~, 1.5, 'q', !!str 12, 010]
";
    let expected = r#"{"base":{"a":1,"b":16},"copy":{"b":2,"a":1},"text":"x\ny\n","list":[null,1.5,"q","12",8]}"#;
    assert_eq!(write_json(&parse_yaml(source).unwrap()), expected);
    assert!(
        parse_yaml("a: 1\na: 2\n")
            .unwrap_err()
            .contains("already defined")
    );
    assert!(parse_yaml("a: [").is_err());
}

proptest::proptest! {
    #[test]
    fn yaml_reads_back_what_it_writes(text in "\\PC{0,12}|[a-z:#\\-'\" \n\t]{0,12}") {
        let value = Value::list([Value::string(text.as_str()), Value::structure([(Arc::from(text.as_str()), Value::Null)])]);
        let written = write_yaml(&value);
        proptest::prop_assert_eq!(parse_yaml(&written).unwrap(), value, "{}", written);
    }

    #[test]
    fn json_reads_back_what_it_writes(text in "\\PC{0,16}", number in proptest::num::i64::ANY) {
        let value = Value::list([Value::string(text), Value::Number(number.into())]);
        proptest::prop_assert_eq!(parse_json(&write_json(&value)).unwrap(), value);
    }

    #[test]
    fn readers_never_panic(text in "[\\[\\]{}:,\"'a-c0-9.\\-+e#\n =<&*!|>%]{0,40}") {
        let _ = parse_json(&text);
        let _ = parse_yaml(&text);
        for name in ["encoding/toml.Unmarshal", "encoding/csv.Decode", "net.URL", "time.Duration"] {
            let _ = call(name, &write_json(&Value::string(text.as_str())));
        }
        let template = format!("{{{{{text}}}}}");
        let _ = call("text/template.Execute", &format!("{}, 1", write_json(&Value::string(template))));
    }
}
