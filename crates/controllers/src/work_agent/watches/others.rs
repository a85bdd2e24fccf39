//! Works that share an object: what one of them does to it is news to the others.

use bellwether_work::manifest::ObjectId;

use super::{Watches, kind_of, name_of};
use crate::work_agent::WorkKey;

impl Watches {
    /// Tells all works that an object concerns, but the one that removed it or created it again: to that
    /// one alone the echo of what it did is no news.
    pub(in crate::work_agent) fn notify_other_works(&self, id: &ObjectId, work: &WorkKey) {
        let kinds = self.kinds.lock();
        let entry = kinds
            .get(&kind_of(id))
            .and_then(|state| state.objects.get(&name_of(id)));
        let works = entry.into_iter().flat_map(|entry| &entry.works);
        for other in works.filter(|other| *other != work) {
            self.queue.add(other.clone());
        }
    }
}
