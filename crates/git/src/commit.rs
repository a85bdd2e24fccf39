//! The commit that is pushed. The same content, parent and time make the same commit.

use jiff::Timestamp;

use crate::object::{Kind, Object, Oid};
use crate::signature::SigningKey;

/// What a commit says besides its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Who made it: name and address of mail.
    pub author: (String, String),
    /// What it is for.
    pub message: String,
    /// When it was made. It has to come from what is pushed, not from a clock, for commits to be reproducible.
    pub time: Timestamp,
}

/// Makes a commit, signed if there is a key.
pub fn commit(
    tree: Oid,
    parent: Option<Oid>,
    description: &Description,
    key: Option<&SigningKey>,
) -> Object {
    let name = plain(&description.author.0);
    let mail = plain(&description.author.1);
    let seconds = description.time.as_second().max(0);
    let person = format!("{name} <{mail}> {seconds} +0000");
    let parent = parent.map(|parent| format!("parent {parent}\n"));
    let parent = parent.unwrap_or_default();
    let head = format!("tree {tree}\n{parent}author {person}\ncommitter {person}\n");
    let message = description.message.replace('\0', "");
    let body = format!("\n{}\n", message.trim_end());
    let signature = key.map(|key| {
        let signature = key.sign(format!("{head}{body}").as_bytes());
        format!("gpgsig {}\n", signature.replace('\n', "\n "))
    });
    let text = format!("{head}{}{body}", signature.unwrap_or_default());
    Object::new(Kind::Commit, text.into_bytes())
}

/// A name without what git takes for the end of one.
fn plain(text: &str) -> String {
    let text = text
        .chars()
        .filter(|letter| !letter.is_control() && !"<>".contains(*letter));
    text.collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_those_of_git() {
        let description = Description {
            author: ("A <U> Thor\n".to_owned(), "author@example.org".to_owned()),
            message: "Subject\n\nBody\n\n".to_owned(),
            time: Timestamp::from_second(1_700_000_000).unwrap(),
        };
        let made = commit(Oid::EMPTY_TREE, None, &description, None);
        let text = std::str::from_utf8(&made.content).unwrap();
        assert_eq!(
            text,
            "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor A U Thor <author@example.org> 1700000000 \
             +0000\ncommitter A U Thor <author@example.org> 1700000000 +0000\n\nSubject\n\nBody\n"
        );
        assert_eq!(
            made.oid(),
            commit(Oid::EMPTY_TREE, None, &description, None).oid()
        );
    }
}
