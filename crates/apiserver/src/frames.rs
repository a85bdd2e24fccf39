//! The text of an answer on its way out, in frames of a few kilobytes.
//!
//! A client that does not read holds one frame, not the whole answer: an object that is larger than
//! a frame is read from where it is stored, part by part, while the client takes it.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::object::StoredObject;

/// About how many bytes are handed over at once.
pub(crate) const FRAME: usize = 32 * 1024;

/// Objects up to this size are copied together; larger ones are referred to.
const COPIED: usize = 8 * 1024;

/// Text that is to be sent.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    parts: VecDeque<Part>,
    /// How many bytes all parts have together.
    length: usize,
}

#[derive(Debug)]
enum Part {
    /// Text from an offset on.
    Text(Vec<u8>, usize),
    /// The text of a stored object from an offset on.
    Object(Arc<StoredObject>, usize),
}

impl Frames {
    /// How many bytes are yet to be sent.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// How many bytes this holds itself, as opposed to those of stored objects.
    pub(crate) fn held(&self) -> usize {
        let parts = self.parts.iter();
        let texts = parts.map(|part| match part {
            Part::Text(text, _) => text.len(),
            Part::Object(..) => 0,
        });
        texts.sum()
    }

    /// Lets text be appended.
    pub(crate) fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if !matches!(self.parts.back(), Some(Part::Text(..))) {
            self.parts.push_back(Part::Text(Vec::new(), 0));
        }
        if let Some(Part::Text(text, _)) = self.parts.back_mut() {
            let before = text.len();
            write(text);
            self.length += text.len() - before;
        }
    }

    /// Appends text.
    pub(crate) fn text(&mut self, text: impl AsRef<[u8]>) {
        self.write(|out| out.extend_from_slice(text.as_ref()));
    }

    /// Appends an object without its type.
    pub(crate) fn untyped(&mut self, object: &Arc<StoredObject>) {
        self.object(object, 0);
    }

    /// Appends an object with its type in front.
    pub(crate) fn typed(&mut self, api_version: &str, kind: &str, object: &Arc<StoredObject>) {
        self.write(|out| {
            for piece in [
                "{\"kind\":\"",
                kind,
                "\",\"apiVersion\":\"",
                api_version,
                "\",",
            ] {
                out.extend_from_slice(piece.as_bytes());
            }
        });
        // The brace that opens the object has been written.
        self.object(object, 1);
    }

    fn object(&mut self, object: &Arc<StoredObject>, from: usize) {
        let length = object.length().saturating_sub(from);
        if length <= COPIED {
            self.write(|out| object.write_part(from, length, out));
        } else {
            self.parts.push_back(Part::Object(Arc::clone(object), from));
            self.length += length;
        }
    }

    /// Takes the next frame; nothing if there is no text.
    pub(crate) fn next(&mut self) -> Option<Vec<u8>> {
        let frame = self.take_first().unwrap_or_else(|| self.gather());
        self.length -= frame.len();
        (!frame.is_empty()).then_some(frame)
    }

    /// Takes the first part if it is a frame by itself, which what was just written mostly is.
    fn take_first(&mut self) -> Option<Vec<u8>> {
        let alone = self.parts.len() == 1;
        let is_frame = |part: &mut Part| match part {
            Part::Text(text, 0) => (alone || text.len() >= FRAME) && text.len() <= FRAME + COPIED,
            _ => false,
        };
        match self.parts.pop_front_if(is_frame)? {
            Part::Text(text, _) => Some(text),
            Part::Object(..) => None,
        }
    }

    /// Copies the beginning of the text.
    fn gather(&mut self) -> Vec<u8> {
        let mut frame = Vec::with_capacity(self.length.min(FRAME));
        while frame.len() < FRAME
            && let Some(part) = self.parts.front_mut()
        {
            let (before, room) = (frame.len(), FRAME - frame.len());
            let (from, length) = match part {
                Part::Text(text, from) => {
                    let rest = text.get(*from..).unwrap_or_default();
                    frame.extend_from_slice(&rest[..rest.len().min(room)]);
                    (from, text.len())
                }
                Part::Object(object, from) => {
                    object.write_part(*from, room, &mut frame);
                    (from, object.length())
                }
            };
            *from += frame.len() - before;
            if *from >= length {
                self.parts.pop_front();
            }
        }
        frame
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::object::Draft;

    fn object(size: usize) -> Arc<StoredObject> {
        let text = "x".repeat(size);
        Arc::new(Draft::new(&json!({"metadata": {"name": "n"}, "data": {"a": text}})).finish(1))
    }

    /// All frames, and the most bytes that were held besides stored objects.
    fn drain(mut frames: Frames) -> (Vec<Vec<u8>>, usize) {
        let mut out = Vec::new();
        let mut most = 0;
        while let Some(frame) = frames.next() {
            most = most.max(frames.held() + frame.len());
            out.push(frame);
        }
        assert_eq!((frames.len(), frames.held()), (0, 0));
        (out, most)
    }

    #[test]
    fn a_large_object_is_sent_in_parts_and_not_copied_whole() {
        let large = object(1_000_000);
        let mut frames = Frames::default();
        frames.text("[");
        frames.typed("v1", "X", &large);
        frames.text(",");
        frames.untyped(&object(10));
        frames.text("]");
        let length = frames.len();
        let (sent, most) = drain(frames);
        assert!(most <= 2 * FRAME, "{most} bytes held");
        assert!(sent.iter().all(|frame| frame.len() <= FRAME));
        let sent = sent.concat();
        assert_eq!(sent.len(), length);
        let read: serde_json::Value = serde_json::from_slice(&sent).unwrap();
        assert_eq!(read[0], large.to_value("v1", "X"));
        assert_eq!(read[1]["data"]["a"], "xxxxxxxxxx");
    }

    #[test]
    fn small_texts_are_sent_together() {
        let mut frames = Frames::default();
        assert_eq!(frames.next(), None);
        for _ in 0..100 {
            frames.untyped(&object(100));
        }
        let (sent, _) = drain(frames);
        assert_eq!(sent.len(), 1);
    }

    #[test]
    fn a_long_text_is_cut_without_being_moved() {
        let mut frames = Frames::default();
        let text: Vec<u8> = (b'a'..=b'z').cycle().take(5 * FRAME + 7).collect();
        frames.text(&text);
        let (sent, _) = drain(frames);
        assert_eq!((sent.len(), sent.concat() == text), (6, true));
    }
}
