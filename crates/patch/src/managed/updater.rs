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
use crate::typed::select::{drop_emptied, remove};
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
        self.reconcile_with_schema(entries)?;
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
        self.reconcile_with_schema(entries)
            .map_err(failed("failed to reconcile managed fields"))?;

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
        drop_emptied(self.kind, &mut merged, &gone);
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
        match entries.get_mut(manager) {
            Some(last) => {
                entry.time.clone_from(&last.time);
                Some(std::mem::replace(last, entry))
            }
            None => {
                entries.0.push(entry);
                None
            }
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
        let Some((kind, live)) = self.in_version(self.live, version)? else {
            return Ok(None);
        };
        let Some((_, new)) = self.in_version(new, version)? else {
            return Ok(None);
        };
        self.compared(kind, &live, &new).map(Some)
    }

    fn is_foreign(&self, version: &str) -> bool {
        version != self.write.api_version && self.write.versions.is_some()
    }

    /// The object in another version and its type there; `None` if the version is not served.
    fn in_version<'v>(
        &self,
        object: &'v Value,
        version: &str,
    ) -> Result<Option<(Type<'a>, Cow<'v, Value>)>, TypeErrors> {
        let versions = match self.write.versions {
            Some(versions) if version != self.write.api_version => versions,
            _ => return Ok(Some((self.kind, Cow::Borrowed(object)))),
        };
        let Some(schema) = versions.schema(version) else {
            return Ok(None);
        };
        let converted = versions.convert(object, version).map_err(|message| {
            TypeErrors::new(format!("failed to convert object to {version}: {message}"))
        })?;
        Ok(Some((Type::root(schema), Cow::Owned(converted))))
    }

    fn reconcile_with_schema(&self, entries: &mut Entries) -> Result<(), TypeErrors> {
        let mut types: BTreeMap<String, Option<Type>> = BTreeMap::new();
        for entry in &entries.0 {
            if self.is_foreign(&entry.api_version) && !types.contains_key(&entry.api_version) {
                let found = self.in_version(self.live, &entry.api_version)?;
                types.insert(entry.api_version.clone(), found.map(|(kind, _)| kind));
            }
        }
        entries.0.retain_mut(|entry| {
            let kind = match types.get(&entry.api_version) {
                Some(Some(kind)) => *kind,
                Some(None) => return false,
                None => self.kind,
            };
            if is_outdated(kind, &entry.set) {
                entry.set = reconciled(kind, &entry.set);
            }
            true
        });
        Ok(())
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
        let Some((kind, converted)) = self.in_version(&merged, &last.api_version)? else {
            return Ok((merged, FieldSet::new()));
        };
        let converted = converted.into_owned();
        let last_named = with_named_parents(kind, &last.set);
        let pruned = remove(kind, converted.clone(), &last_named);
        let pruned = self.add_back_owned(&converted, pruned, &last.api_version, entries)?;
        // Only what the manager owned may go; what merely lay below it comes back.
        let gone = with_named_parents(kind, &field_set(kind, &converted)?)
            .difference(&with_named_parents(kind, &field_set(kind, &pruned)?))
            .intersection(&last_named);
        let pruned = remove(kind, converted, &gone);
        let pruned = match self.write.versions {
            Some(versions) if last.api_version != self.write.api_version => versions
                .convert(&pruned, self.write.api_version)
                .map_err(TypeErrors::new)?,
            _ => pruned,
        };
        Ok((pruned, gone))
    }

    /// Takes back from a removal what any manager owns, version by version, that of the removal
    /// first.
    fn add_back_owned(
        &self,
        merged: &Value,
        pruned: Value,
        version: &str,
        entries: &Entries,
    ) -> Result<Value, TypeErrors> {
        let mut owned: BTreeMap<&str, FieldSet> = BTreeMap::new();
        for entry in &entries.0 {
            let version = if self.is_foreign(&entry.api_version) {
                entry.api_version.as_str()
            } else {
                self.write.api_version
            };
            let set = owned.entry(version).or_default();
            *set = std::mem::take(set).union(entry.set.clone());
        }
        let home = if self.is_foreign(version) {
            version
        } else {
            self.write.api_version
        };
        let mut order = vec![home];
        order.extend(owned.keys().copied().filter(|other| *other != home));

        let mut pruned = pruned;
        for other in order {
            let Some(owned) = owned.get(other) else {
                continue;
            };
            let source = Conversion {
                updater: self,
                from: home,
                to: other,
            };
            let Some((kind, full)) = source.there(merged)? else {
                continue;
            };
            let Some((_, part)) = source.there(&pruned)? else {
                continue;
            };
            let keep = with_named_parents(kind, &field_set(kind, &part)?)
                .union(with_named_parents(kind, owned));
            let gone = with_named_parents(kind, &field_set(kind, &full)?).difference(&keep);
            let part = remove(kind, full.into_owned(), &gone);
            pruned = source.back(part)?;
        }
        Ok(pruned)
    }
}

/// Two versions between which pruning looks at the object.
struct Conversion<'u, 'a> {
    updater: &'u Updater<'a>,
    from: &'u str,
    to: &'u str,
}

impl<'a> Conversion<'_, 'a> {
    fn there<'v>(
        &self,
        object: &'v Value,
    ) -> Result<Option<(Type<'a>, Cow<'v, Value>)>, TypeErrors> {
        if self.from == self.to {
            let kind = match self.updater.in_version(&Value::Null, self.to) {
                Ok(Some((kind, _))) => kind,
                _ => self.updater.kind,
            };
            return Ok(Some((kind, Cow::Borrowed(object))));
        }
        self.updater.in_version(object, self.to)
    }

    fn back(&self, object: Value) -> Result<Value, TypeErrors> {
        match self.updater.write.versions {
            Some(versions) if self.from != self.to => versions
                .convert(&object, self.from)
                .map_err(TypeErrors::new),
            _ => Ok(object),
        }
    }
}

fn strip(entries: &mut Entries, manager: &ManagerId) {
    if let Some(entry) = entries.get_mut(manager) {
        entry.set.subtract(&NEVER_OWNED);
    }
    entries.0.retain(|entry| !entry.set.is_empty());
}
