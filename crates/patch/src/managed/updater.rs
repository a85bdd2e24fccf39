//! The two algorithms behind the field manager, on decoded entries.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

use super::conflict::{Conflict, Conflicts};
use super::entries::{Entries, Entry, ManagerId};
use super::{ApplyError, Write, typed_error};
use crate::fieldset::FieldSet;
use crate::typed::Type;
use crate::typed::compare::{Comparison, compare};
use crate::typed::fields::{field_set, is_outdated, reconciled, with_named_parents};
use crate::typed::merge::merge;
use crate::typed::select::{remove, settle_emptied};
use crate::typed::validate::{TypeErrors, validate};

/// Fields that the server sets and nobody owns.
static NEVER_OWNED: LazyLock<FieldSet> = LazyLock::new(|| {
    FieldSet::of_fields(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});

/// One write to one object.
pub(super) struct Updater<'a> {
    write: &'a Write<'a>,
    live: &'a Value,
    kind: Type<'a>,
}

impl<'a> Updater<'a> {
    pub(super) fn new(write: &'a Write<'a>, live: &'a Value) -> Self {
        Self {
            write,
            live,
            kind: Type::root(write.schema),
        }
    }

    /// Gives what differs between the live and the new object to `manager`.
    ///
    /// The time of its entry changes only if it set something; removing is not owning.
    pub(super) fn update(
        &self,
        new: &Value,
        entries: &mut Entries,
        manager: ManagerId,
    ) -> Result<(), TypeErrors> {
        self.reconcile_with_schema(entries);
        let change = self.settle(new, entries, None, true)?.map_err(|_| {
            // Forcing leaves no conflict.
            TypeErrors::new("unexpected conflict")
        })?;
        let mut taken = change.added.union(change.modified);
        taken.subtract(&NEVER_OWNED);
        if taken.is_empty() {
            return Ok(());
        }
        let time = Some(self.write.now.to_owned());
        match entries.get_mut(&manager) {
            Some(entry) => {
                entry.set = std::mem::take(&mut entry.set).union(taken);
                self.write.api_version.clone_into(&mut entry.api_version);
                entry.time = time;
            }
            None => entries.0.push(Entry {
                id: manager,
                api_version: self.write.api_version.to_owned(),
                time,
                set: taken,
            }),
        }
        Ok(())
    }

    /// Merges a configuration; `None` when the object stays as it is.
    pub(super) fn apply(
        &self,
        configuration: &Value,
        entries: &mut Entries,
        manager: &ManagerId,
        force: bool,
    ) -> Result<Option<Value>, ApplyError> {
        let failed = |attempt: &'static str| {
            move |errors: TypeErrors| ApplyError::Typed(format!("{attempt}: {errors}"))
        };
        validate(self.kind, configuration, false).map_err(|errors| {
            typed_error(
                "failed to create typed patch object",
                configuration,
                self.write,
                &errors,
            )
        })?;
        validate(self.kind, self.live, true).map_err(|errors| {
            typed_error(
                "failed to create typed live object",
                self.live,
                self.write,
                &errors,
            )
        })?;
        self.reconcile_with_schema(entries);

        let mut merged =
            merge(self.kind, self.live, configuration).map_err(failed("failed to merge config"))?;
        let mut set =
            field_set(self.kind, configuration).map_err(failed("failed to get field set"))?;
        if let Some(reset) = self.write.reset_fields {
            set = set.recursive_difference(reset);
        }
        let last = self.record_applied(set, entries, manager);
        let mut gone = FieldSet::new();
        if let Some(last) = last {
            (merged, gone) = self
                .prune(merged, entries, manager, &last)
                .map_err(failed("failed to prune fields"))?;
        }
        self.settle(&merged, entries, Some(manager), force)
            .map_err(failed("failed to compare objects"))?
            .map_err(ApplyError::Conflict)?;
        if !gone.is_empty() {
            settle_emptied(self.kind, &mut merged, &gone, &all_owned(entries));
        }
        strip(entries, manager);
        Ok((!crate::value::equal(self.live, &merged)).then_some(merged))
    }

    /// Puts the applied set in place of the manager's last one, which is returned.
    fn record_applied(
        &self,
        set: FieldSet,
        entries: &mut Entries,
        manager: &ManagerId,
    ) -> Option<Entry> {
        let mut entry = Entry {
            id: manager.clone(),
            api_version: self.write.api_version.to_owned(),
            time: None,
            set,
        };
        if let Some(last) = entries.get_mut(manager) {
            entry.time.clone_from(&last.time);
            Some(std::mem::replace(last, entry))
        } else {
            entries.0.push(entry);
            None
        }
    }

    /// Compares live and new object for every manager but `acting`: who owns what changed loses it,
    /// or conflicts where the acting manager does not force.
    fn settle(
        &self,
        new: &Value,
        entries: &mut Entries,
        acting: Option<&ManagerId>,
        force: bool,
    ) -> Result<Result<Comparison, Conflicts>, TypeErrors> {
        let own = self.compared(self.kind, self.live, new)?;
        let mut others: BTreeMap<String, Option<Comparison>> = BTreeMap::new();
        for entry in &entries.0 {
            if self.is_foreign(&entry.api_version) && !others.contains_key(&entry.api_version) {
                let comparison = self.compare_in_version(new, &entry.api_version)?;
                others.insert(entry.api_version.clone(), comparison);
            }
        }
        let change_for = |entry: &Entry| match others.get(&entry.api_version) {
            Some(other) => other.as_ref(),
            None => Some(&own),
        };
        if !force {
            let mut conflicts = Vec::new();
            for entry in entries.0.iter().filter(|entry| Some(&entry.id) != acting) {
                if let Some(change) = change_for(entry) {
                    let touched = entry.set.intersection(&change.modified);
                    let touched = touched.union(entry.set.intersection(&change.added));
                    touched.for_each(&mut |path| conflicts.push(Conflict::new(&entry.id, path)));
                }
            }
            if !conflicts.is_empty() {
                return Ok(Err(Conflicts::new(conflicts)));
            }
        }
        entries.0.retain_mut(|entry| {
            if Some(&entry.id) == acting {
                return !entry.set.is_empty();
            }
            let Some(change) = change_for(entry) else {
                // The version is gone, and with it the meaning of the set.
                return false;
            };
            entry.set.subtract(&change.modified);
            entry.set.subtract(&change.added);
            entry.set.subtract(&change.removed);
            !entry.set.is_empty()
        });
        Ok(Ok(own))
    }

    fn compared(&self, kind: Type, left: &Value, right: &Value) -> Result<Comparison, TypeErrors> {
        Ok(compare(kind, left, right)?.without(self.write.reset_fields))
    }

    fn compare_in_version(
        &self,
        new: &Value,
        version: &str,
    ) -> Result<Option<Comparison>, TypeErrors> {
        let Some(kind) = self.type_in(version) else {
            return Ok(None);
        };
        let live = self.converted(self.live, self.write.api_version, version)?;
        let new = self.converted(new, self.write.api_version, version)?;
        self.compared(kind, &live, &new).map(Some)
    }

    fn is_foreign(&self, version: &str) -> bool {
        version != self.write.api_version && self.write.versions.is_some()
    }

    /// The type in a version; `None` if the version is not served.
    fn type_in(&self, version: &str) -> Option<Type<'a>> {
        match self.write.versions {
            Some(versions) if version != self.write.api_version => {
                versions.schema(version).map(Type::root)
            }
            _ => Some(self.kind),
        }
    }

    /// An object of one version in another one.
    fn converted<'v>(
        &self,
        object: &'v Value,
        from: &str,
        to: &str,
    ) -> Result<Cow<'v, Value>, TypeErrors> {
        match self.write.versions {
            Some(versions) if from != to => {
                versions
                    .convert(object, to)
                    .map(Cow::Owned)
                    .map_err(|message| {
                        TypeErrors::new(format!("failed to convert object to {to}: {message}"))
                    })
            }
            _ => Ok(Cow::Borrowed(object)),
        }
    }

    /// Brings all sets up to date with the schema, and drops those of versions that are gone.
    fn reconcile_with_schema(&self, entries: &mut Entries) {
        entries.0.retain_mut(|entry| {
            let Some(kind) = self.type_in(&entry.api_version) else {
                return false;
            };
            if is_outdated(kind, &entry.set) {
                entry.set = reconciled(kind, &entry.set);
            }
            true
        });
    }

    /// Removes what the manager applied last time, leaves out now, and nobody else owns; also
    /// returns what that was.
    fn prune(
        &self,
        merged: Value,
        entries: &Entries,
        manager: &ManagerId,
        last: &Entry,
    ) -> Result<(Value, FieldSet), TypeErrors> {
        let current = entries.get(manager);
        let unchanged = current.is_some_and(|current| {
            current.api_version == last.api_version && last.set.is_subset(&current.set)
        });
        if unchanged || last.set.is_empty() {
            return Ok((merged, FieldSet::new()));
        }
        let Some(kind) = self.type_in(&last.api_version) else {
            return Ok((merged, FieldSet::new()));
        };
        let version = last.api_version.as_str();
        let converted = self
            .converted(&merged, self.write.api_version, version)?
            .into_owned();
        let last_named = with_named_parents(kind, &last.set);
        let pruned = remove(kind, converted.clone(), &last_named);
        let pruned = self.add_back_owned(&converted, pruned, version, entries)?;
        // Only what the manager owned may go; what merely lay below it comes back.
        let gone = with_named_parents(kind, &field_set(kind, &converted)?)
            .difference(&with_named_parents(kind, &field_set(kind, &pruned)?))
            .intersection(&last_named);
        let mut pruned = remove(kind, converted, &gone);
        if version == self.write.api_version || self.write.versions.is_none() {
            return Ok((pruned, gone));
        }
        // What a conversion makes of null is its own affair, so there must be none.
        settle_emptied(kind, &mut pruned, &gone, &all_owned(entries));
        let pruned = self.converted(&pruned, version, self.write.api_version)?;
        Ok((pruned.into_owned(), FieldSet::new()))
    }

    /// Takes back from a removal what any manager owns: version by version, that of the removal
    /// first, because a conversion may need what would be missing.
    fn add_back_owned(
        &self,
        merged: &Value,
        pruned: Value,
        version: &str,
        entries: &Entries,
    ) -> Result<Value, TypeErrors> {
        let home = self.effective(version);
        let mut owned: BTreeMap<&str, Vec<FieldSet>> = BTreeMap::new();
        for entry in &entries.0 {
            let sets = owned.entry(self.effective(&entry.api_version)).or_default();
            sets.push(entry.set.clone());
        }
        let mut order = vec![home];
        order.extend(owned.keys().copied().filter(|other| *other != home));

        let mut pruned = pruned;
        for other in order {
            let (Some(owned), Some(kind)) = (owned.remove(other), self.type_in(other)) else {
                continue;
            };
            let owned = FieldSet::union_of(owned);
            let full = self.converted(merged, home, other)?;
            let part = self.converted(&pruned, home, other)?;
            let keep = with_named_parents(kind, &field_set(kind, &part)?)
                .union(with_named_parents(kind, &owned));
            let gone = with_named_parents(kind, &field_set(kind, &full)?).difference(&keep);
            let part = remove(kind, full.into_owned(), &gone);
            pruned = self.converted(&part, other, home)?.into_owned();
        }
        Ok(pruned)
    }

    /// The version that an entry counts for: its own, or that of the request if all are one.
    fn effective<'v>(&'v self, version: &'v str) -> &'v str {
        if self.is_foreign(version) {
            version
        } else {
            self.write.api_version
        }
    }
}

/// What anybody owns.
fn all_owned(entries: &Entries) -> FieldSet {
    let sets = entries.0.iter().map(|entry| entry.set.clone());
    FieldSet::union_of(sets.collect())
}

fn strip(entries: &mut Entries, manager: &ManagerId) {
    if let Some(entry) = entries.get_mut(manager) {
        entry.set.subtract(&NEVER_OWNED);
    }
    entries.0.retain(|entry| !entry.set.is_empty());
}
