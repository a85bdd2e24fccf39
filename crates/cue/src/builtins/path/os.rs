//! How the operating systems write paths.

/// An operating system whose paths are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Os {
    Unix,
    Windows,
    Plan9,
}

/// Names Windows takes for devices, which count as absolute.
const DEVICES: [&str; 22] = [
    "CON", "PRN", "AUX", "NUL", "COM1", "COM2", "COM3", "COM4", "COM5", "COM6", "COM7", "COM8",
    "COM9", "LPT1", "LPT2", "LPT3", "LPT4", "LPT5", "LPT6", "LPT7", "LPT8", "LPT9",
];

impl Os {
    /// The system with a name as it appears in templates.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name {
            "unix" => Some(Self::Unix),
            "windows" => Some(Self::Windows),
            "plan9" => Some(Self::Plan9),
            _ => None,
        }
    }

    /// The separator that is written.
    pub(super) fn separator(self) -> char {
        if self == Self::Windows { '\\' } else { '/' }
    }

    /// Whether a character is read as a separator.
    pub(super) fn is_separator(self, character: char) -> bool {
        character == '/' || (self == Self::Windows && character == '\\')
    }

    /// Whether a path starts at a root.
    pub(super) fn is_absolute(self, path: &str) -> bool {
        match self {
            Self::Unix => path.starts_with('/'),
            Self::Plan9 => path.starts_with(['/', '#']),
            Self::Windows => {
                let volume = self.volume_length(path);
                let device = DEVICES
                    .iter()
                    .any(|device| device.eq_ignore_ascii_case(path));
                device || (volume > 0 && path[volume..].starts_with(['/', '\\']))
            }
        }
    }

    /// The length of `C:` or `\\host\share`, zero elsewhere.
    pub(super) fn volume_length(self, path: &str) -> usize {
        let bytes = path.as_bytes();
        if self != Self::Windows || bytes.len() < 2 {
            return 0;
        }
        if bytes[1] == b':' && bytes[0].is_ascii_alphabetic() {
            return 2;
        }
        let slash = |byte: u8| byte == b'/' || byte == b'\\';
        let share = bytes.len() >= 5
            && slash(bytes[0])
            && slash(bytes[1])
            && !slash(bytes[2])
            && bytes[2] != b'.';
        if !share {
            return 0;
        }
        let Some(separator) = bytes[3..bytes.len() - 1]
            .iter()
            .position(|byte| slash(*byte))
        else {
            return 0;
        };
        let start = 3 + separator + 1;
        if slash(bytes[start]) || bytes[start] == b'.' {
            return 0;
        }
        let rest = bytes[start..].iter().position(|byte| slash(*byte));
        rest.map_or(bytes.len(), |length| start + length)
    }

    /// Where the last element of a path begins.
    pub(super) fn last_element_start(self, path: &str) -> usize {
        let volume = self.volume_length(path);
        let separator = path[volume..].rfind(|c| self.is_separator(c));
        separator.map_or(volume, |position| volume + position + 1)
    }

    /// Writes slashes as the system's separator.
    pub(super) fn slashes_replaced(self, path: &str) -> String {
        match self {
            Self::Windows => path.replace('/', "\\"),
            Self::Unix | Self::Plan9 => path.to_owned(),
        }
    }

    /// The parts of a search path.
    pub(super) fn split_list(self, list: &str) -> Vec<String> {
        if list.is_empty() {
            return Vec::new();
        }
        match self {
            Self::Unix => list.split(':').map(str::to_owned).collect(),
            Self::Plan9 => list.split('\0').map(str::to_owned).collect(),
            Self::Windows => {
                let mut quoted = false;
                let parts = list.split(|character| {
                    quoted ^= character == '"';
                    character == ';' && !quoted
                });
                parts.map(|part| part.replace('"', "")).collect()
            }
        }
    }

    /// The shortest equivalent path.
    pub(super) fn clean(self, path: &str) -> String {
        let volume = self.volume_length(path);
        let (volume, rest) = path.split_at(volume);
        if rest.is_empty() {
            let is_share = volume.len() > 1 && !volume[1..].starts_with(':');
            return if is_share {
                self.slashes_replaced(volume)
            } else {
                format!("{volume}.")
            };
        }
        let rooted = rest.starts_with(|c| self.is_separator(c));
        let mut parts: Vec<&str> = Vec::new();
        for part in rest.split(|c| self.is_separator(c)) {
            match part {
                "" | "." => {}
                ".." => match parts.last() {
                    Some(&last) if last != ".." => {
                        parts.pop();
                    }
                    _ if rooted => {}
                    _ => parts.push(".."),
                },
                _ => parts.push(part),
            }
        }
        let separator = self.separator().to_string();
        let body = parts.join(&separator);
        let root = if rooted { separator.as_str() } else { "" };
        let body = if body.is_empty() && !rooted {
            "."
        } else {
            body.as_str()
        };
        self.slashes_replaced(&format!("{volume}{root}{body}"))
    }

    /// Joins elements and cleans the result; empty elements are left out.
    pub(super) fn join(self, elements: &[&str]) -> String {
        let Some(first) = elements.iter().position(|element| !element.is_empty()) else {
            return String::new();
        };
        let elements = &elements[first..];
        let separator = self.separator().to_string();
        if self != Self::Windows {
            return self.clean(&elements.join(&separator));
        }
        if elements[0].len() == 2 && elements[0].ends_with(':') {
            // A drive without a root stays without one.
            let rest = elements[1..].iter().position(|element| !element.is_empty());
            let rest = rest.map_or(String::new(), |from| elements[1 + from..].join(&separator));
            return self.clean(&format!("{}{rest}", elements[0]));
        }
        let joined = self.clean(&elements.join(&separator));
        let is_share = |path: &str| self.volume_length(path) > 2;
        let head = self.clean(elements[0]);
        if !is_share(&joined) || is_share(&head) {
            return joined;
        }
        // Joining must not turn ordinary elements into a share.
        let tail = self.clean(&elements[1..].join(&separator));
        if head.ends_with('\\') {
            format!("{head}{tail}")
        } else {
            format!("{head}\\{tail}")
        }
    }

    /// The path from `base` to `target`; `None` when there is no such path.
    pub(super) fn relative(self, base: &str, target: &str) -> Option<String> {
        let same = |left: &str, right: &str| match self {
            Self::Windows => left.to_lowercase() == right.to_lowercase(),
            Self::Unix | Self::Plan9 => left == right,
        };
        let (base_volume, target_volume) = (
            &base[..self.volume_length(base)],
            &target[..self.volume_length(target)],
        );
        let (base_clean, target_clean) = (self.clean(base), self.clean(target));
        if same(&base_clean, &target_clean) {
            return Some(".".to_owned());
        }
        let separator = self.separator();
        let base_rest = match &base_clean[base_volume.len()..] {
            "." => "",
            rest => rest,
        };
        let target_rest = &target_clean[target_volume.len()..];
        let rooted = |path: &str| path.starts_with(separator);
        if rooted(base_rest) != rooted(target_rest) || !same(base_volume, target_volume) {
            return None;
        }
        let parts = |path: &str| -> Vec<String> {
            path.split(separator)
                .filter(|part| !part.is_empty())
                .map(str::to_owned)
                .collect()
        };
        let (base_parts, target_parts) = (parts(base_rest), parts(target_rest));
        let common = base_parts
            .iter()
            .zip(&target_parts)
            .take_while(|(left, right)| same(left, right))
            .count();
        if base_parts.get(common).is_some_and(|part| part == "..") {
            return None;
        }
        let ups = std::iter::repeat_n("..", base_parts.len() - common);
        let downs = target_parts[common..].iter().map(String::as_str);
        let path: Vec<&str> = ups.chain(downs).collect();
        Some(path.join(&separator.to_string()))
    }
}
