//! An outage is logged once when it begins, and once when it is over.

/// Whether something that is tried again and again fails at present.
#[derive(Debug, Default)]
pub struct Outage {
    is_failing: bool,
}

impl Outage {
    /// Notes a failure. Returns true if the attempt before did not fail: only then is it worth a warning.
    pub fn begins(&mut self) -> bool {
        !std::mem::replace(&mut self.is_failing, true)
    }

    /// Notes a success. Returns true if the attempt before failed.
    pub fn ends(&mut self) -> bool {
        std::mem::take(&mut self.is_failing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_begins_and_ends_once() {
        let mut outage = Outage::default();
        assert!(!outage.ends());
        assert!(outage.begins());
        assert!(!outage.begins());
        assert!(outage.ends());
        assert!(!outage.ends());
        assert!(outage.begins());
    }
}
