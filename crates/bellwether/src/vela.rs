//! What people type who come from KubeVela, where the words differ here.

use bellwether_ctl::Error;

/// The command line in words of this program, where `vela` has other ones; the same otherwise.
///
/// Only what means nothing here is translated: `up -f FILE` (`up` has no files), `revision list NAME`, and lists of
/// types. `delete` stays as in kubectl: a kind without a name is an error, and no application.
pub(crate) fn translated(arguments: Vec<String>) -> Vec<String> {
    let words: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    let Some((command, rest)) = words.split_first() else {
        return arguments;
    };
    let translated: Option<Vec<&str>> = match (*command, rest) {
        ("up", rest) if rest.iter().any(|word| is_file(word)) => Some([&["apply"], rest].concat()),
        ("revision", ["list" | "ls", rest @ ..]) => Some([&["app", "revisions"], rest].concat()),
        ("component" | "components", []) => Some(vec!["def", "list", "--type", "component"]),
        ("trait" | "traits", []) => Some(vec!["def", "list", "--type", "trait"]),
        ("def", ["get" | "doc-gen" | "gen-doc", rest @ ..]) => {
            Some([&["def", "show"], rest].concat())
        }
        _ => None,
    };
    let Some(translated) = translated else {
        return arguments;
    };
    let spelled = translated
        .iter()
        .map(|word| match word.strip_prefix("--file") {
            Some(rest) if rest.is_empty() || rest.starts_with('=') => format!("--filename{rest}"),
            _ => (*word).to_owned(),
        });
    let program = arguments.first().cloned();
    program.into_iter().chain(spelled).collect()
}

fn is_file(word: &str) -> bool {
    word == "-f" || word == "--file" || word.starts_with("--file=")
}

/// Says what to type instead of a command line that is not understood; none if it is not one of `vela`.
pub(crate) fn hint(arguments: &[String]) -> Option<&'static str> {
    match arguments.first()?.as_str() {
        "revision" => Some("`bellwether app revisions NAME` lists the revisions of an application"),
        "env" => Some("namespaces take the place of environments: `kubectl create namespace NAME`"),
        "exec" | "port-forward" => {
            Some("`kubectl` does this, with the same words and a pod of `bellwether status NAME`")
        }
        "addon" => Some("there are no addons; `bellwether def list` shows what is built in"),
        "init" => Some(
            "`bellwether def init` writes a definition; docs/applications.md has an application to begin with",
        ),
        "config" => {
            Some("configurations are Secrets; the steps create-config and read-config use them")
        }
        "top" => Some("`bellwether status` and `kubectl top` show what is going on"),
        _ => None,
    }
}

/// An error of `delete`, with what to type instead where its one word is the name of an application and not of a kind.
pub(crate) fn explained(error: Error, words: &[String]) -> Error {
    match (error, words) {
        (Error::NoType { name, meant: None }, [word]) if *word == name => {
            let meant = Some(format!("`bellwether app delete {name}`"));
            Error::NoType { name, meant }
        }
        (error, _) => error,
    }
}

#[cfg(test)]
mod tests {
    use super::Error;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[track_caller]
    fn check(typed: &str, expected: &str) {
        let translated = super::translated(words(&format!("bellwether {typed}")));
        assert_eq!(translated, words(&format!("bellwether {expected}")));
    }

    #[test]
    fn words_of_vela_are_understood() {
        check("up -f app.yaml", "apply -f app.yaml");
        check(
            "up --file=app.yaml -n shop",
            "apply --filename=app.yaml -n shop",
        );
        check("revision list shop", "app revisions shop");
        check("traits", "def list --type trait");
    }

    #[test]
    fn words_of_our_own_stay() {
        for own in [
            "up --clusters 3",
            "delete pods",
            "delete pods --all",
            "delete pods -l app=web",
            "delete pod web",
            "delete deployment/web",
            "delete -f app.yaml",
            "delete --help",
            "apply -f app.yaml",
            "def show scaler",
        ] {
            check(own, own);
        }
    }

    #[test]
    fn other_words_of_vela_are_answered_with_ours() {
        let hint = |text: &str| super::hint(&words(text)).unwrap_or_default();
        assert!(hint("exec shop -- ls").contains("kubectl"));
        assert!(hint("addon list").contains("def list"));
        assert_eq!(hint("up --clustres 3"), "");
        assert_eq!(hint("apply -f app.yaml"), "");
    }

    #[track_caller]
    fn check_delete(typed: &str, name: &str, meant: Option<&str>, expected: &str) {
        let error = Error::NoType {
            name: name.to_owned(),
            meant: meant.map(str::to_owned),
        };
        let text = super::explained(error, &words(typed)).to_string();
        let expected = format!("the server doesn't have a resource type {name:?}{expected}");
        assert_eq!(text, expected);
    }

    #[test]
    fn a_name_alone_may_be_an_application_to_delete() {
        let hint = "; did you mean `bellwether app delete shop`?";
        check_delete("shop", "shop", None, hint);
        check_delete("pdos", "pdos", Some("pods"), "; did you mean pods?");
        check_delete("things shop", "things", None, "");
    }
}
