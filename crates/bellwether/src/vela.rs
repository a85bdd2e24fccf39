//! What people type who come from KubeVela, where the words differ here.

/// Says what to type instead of a command line that is not understood; none if it is not one of `vela`.
pub(crate) fn hint(arguments: &[String]) -> Option<&'static str> {
    let mut words = arguments.iter().map(String::as_str);
    let command = words.next()?;
    let has_file = words.any(|word| word == "-f" || word.starts_with("--file"));
    match command {
        "up" if has_file => {
            Some("`up` starts clusters; an application is delivered by `bellwether apply -f FILE`")
        }
        "revision" => Some("`bellwether app revisions NAME` lists the revisions of an application"),
        "env" => Some("namespaces take the place of environments: `kubectl create namespace NAME`"),
        "exec" | "port-forward" => {
            Some("`kubectl` does this, with the same words and a pod of `bellwether status NAME`")
        }
        "addon" => Some("there are no addons; `bellwether def list` shows what is built in"),
        "init" => Some(
            "`bellwether def init` writes a definition; docs/applications.md has an application to begin with",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn words_of_vela_are_answered_with_ours() {
        let hint = |text: &str| {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            super::hint(&words).unwrap_or_default()
        };
        assert!(hint("up -f app.yaml").contains("bellwether apply -f"));
        assert!(hint("revision list shop").contains("app revisions"));
        assert!(hint("exec shop -- ls").contains("kubectl"));
        assert_eq!(hint("up --clustres 3"), "");
        assert_eq!(hint("apply -f app.yaml"), "");
    }
}
