//! Which member clusters `up` runs: those that the data directory has, and those that are asked for.

/// How many members a new fleet gets if nothing is said.
const DEFAULT_MEMBERS: usize = 3;

/// What the names of members begin with; their number follows.
const PREFIX: &str = "cluster";

/// The member clusters of one start.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Choice {
    /// Members that are there and stay, in order of their numbers.
    pub(super) keep: Vec<String>,
    /// Members that are created.
    pub(super) add: Vec<String>,
    /// Members that are deleted with everything in them.
    pub(super) remove: Vec<String>,
}

/// What `up` is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChoiceRequest {
    /// The number after `--clusters`.
    pub(super) clusters: Option<usize>,
    /// True if `--remove` is given.
    pub(super) may_remove: bool,
    /// True if the data directory has no hub yet.
    pub(super) is_new: bool,
}

/// The number of a member; members of other names have none.
pub(super) fn number(name: &str) -> Option<usize> {
    let digits = name.strip_prefix(PREFIX)?;
    let number = digits.parse().ok()?;
    (number > 0 && name == member_name(number)).then_some(number)
}

fn member_name(number: usize) -> String {
    format!("{PREFIX}{number}")
}

/// Chooses from the members that the data directory has. The error says how to ask otherwise.
pub(super) fn choose(mut present: Vec<String>, request: ChoiceRequest) -> Result<Choice, String> {
    present.sort_by_key(|name| (number(name).unwrap_or(usize::MAX), name.clone()));
    let wanted = match request.clusters {
        Some(wanted) => wanted,
        None if request.is_new => DEFAULT_MEMBERS,
        None => {
            return Ok(Choice {
                keep: present,
                ..Choice::default()
            });
        }
    };
    let is_surplus = |name: &String| number(name).is_some_and(|number| number > wanted);
    let total = present.len();
    let (remove, keep): (Vec<String>, Vec<String>) = present.into_iter().partition(is_surplus);
    if let (false, [first, rest @ ..]) = (request.may_remove, remove.as_slice()) {
        let names = match rest.last() {
            Some(last) => format!("{first} to {last}"),
            None => first.clone(),
        };
        return Err(format!(
            "the data directory has {total} member clusters, more than --clusters {wanted}: leave --clusters out to run all of them, or add --remove to delete {names} with everything in them"
        ));
    }
    let add = (1..=wanted)
        .map(member_name)
        .filter(|name| !keep.contains(name))
        .collect();
    Ok(Choice { keep, add, remove })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(numbers: &[usize]) -> Vec<String> {
        numbers.iter().copied().map(member_name).collect()
    }

    /// Numbers of members that are kept, added and removed.
    type Numbers<'a> = (&'a [usize], &'a [usize], &'a [usize]);

    #[track_caller]
    fn check(
        present: &[usize],
        clusters: Option<usize>,
        may_remove: bool,
        expected: Result<Numbers<'_>, &str>,
    ) {
        let request = ChoiceRequest {
            clusters,
            may_remove,
            is_new: present.is_empty(),
        };
        match (choose(names(present), request), expected) {
            (Ok(choice), Ok((keep, add, remove))) => {
                let expected = Choice {
                    keep: names(keep),
                    add: names(add),
                    remove: names(remove),
                };
                assert_eq!(choice, expected);
            }
            (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
            (choice, expected) => panic!("{choice:?}, not {expected:?}"),
        }
    }

    #[test]
    fn a_new_fleet_has_three_members_unless_told_otherwise() {
        check(&[], None, false, Ok((&[], &[1, 2, 3], &[])));
        check(&[], Some(1), false, Ok((&[], &[1], &[])));
        check(&[], Some(0), false, Ok((&[], &[], &[])));
    }

    #[test]
    fn what_the_directory_has_runs() {
        check(&[10, 2, 1], None, false, Ok((&[1, 2, 10], &[], &[])));
        check(&[1, 2], Some(4), false, Ok((&[1, 2], &[3, 4], &[])));
    }

    #[test]
    fn fewer_members_have_to_be_asked_for_twice() {
        let refused = "3 member clusters, more than --clusters 1: leave --clusters out to run all of them, or add --remove to delete cluster2 to cluster10 with";
        check(&[1, 2, 10], Some(1), false, Err(refused));
        check(&[1, 2], Some(1), false, Err("delete cluster2 with"));
        check(&[1, 2, 10], Some(1), true, Ok((&[1], &[], &[2, 10])));
    }

    #[test]
    fn only_numbered_members_are_counted() {
        for (name, expected) in [
            ("cluster7", Some(7)),
            ("cluster07", None),
            ("cluster0", None),
            ("cluster", None),
            ("edge", None),
        ] {
            assert_eq!(number(name), expected, "{name}");
        }
    }
}
