//! Files that were right, damaged: their bytes, and what their heads say of shapes, types and sizes.

use super::{archive, hostile};
use fastrand::Rng;
use serde_json::Value;

/// Numbers at the ends of what bytes hold.
const NUMBERS: &[u64] = &[
    0,
    1,
    0x7f,
    0xff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    1 << 30,
    1_000_000_000,
    50_000_000,
    1 << 40,
    0x7fff_ffff_ffff_ffff,
    u64::MAX,
    0x7ff0_0000_0000_0000,
    0x7ff8_0000_0000_0000,
];

/// Numbers at the ends of what texts hold.
const WORDS: &[&str] = &[
    "0",
    "-1",
    "1",
    "3",
    "2147483647",
    "2147483648",
    "-2147483648",
    "4294967296",
    "1073741824",
    "1000000000",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999999",
    "1e308",
    "1e999",
    "-1e999",
    "nan",
    "inf",
    "1e-400",
    "0x10",
    "1_000",
    "\u{661}",
    "",
];

/// Types of arrays.
const TYPES: &[&str] = &[
    "<f8", "<f4", "<f2", ">f8", ">i4", "<i4", "<i8", "<u8", "|u1", "|i1", "|b1", "|O", "<c16", "|S8", "<U8", "<M8[s]",
    "|V8",
];

/// Shapes of arrays, most of which no memory holds.
const SHAPES: &[&str] = &[
    "()",
    "(0,)",
    "(1,)",
    "(1000000000,)",
    "(3000000000,)",
    "(1099511627776,)",
    "(1152921504606846976,)",
    "(4294967296, 4294967296)",
    "(0, 18446744073709551615)",
    "(18446744073709551616,)",
    "(-1,)",
    "(65536, 65536)",
    "(30, 2, 2)",
];

/// Names of arrays that nobody else in the archive contradicts.
const ONE_MORE: &[&str] = &["set more", "set more", "set more", "more on node", "edge.cells -> more", "x"];

/// What begins an array.
const MAGIC: &[u8] = b"\x93NUMPY";

/// How many times as long what is packed becomes when it is unpacked, at best.
const DENSEST: usize = 1032;

/// Damages a file in one or several ways; `other` is a file of any kind.
pub fn damage(rng: &mut Rng, bytes: &[u8], other: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..[1, 1, 1, 2, 4][rng.usize(0..5)] {
        bytes = once(rng, bytes, other);
    }
    bytes
}

fn once(rng: &mut Rng, bytes: Vec<u8>, other: &[u8]) -> Vec<u8> {
    if bytes.is_empty() {
        return other.to_vec();
    }
    // Most of the damage to archives is to what is in them.
    if bytes.starts_with(b"PK")
        && rng.u8(0..4) > 0
        && let Some(entries) = archive::entries(&bytes).filter(|entries| !entries.is_empty())
    {
        return in_archive(rng, entries, other);
    }
    if bytes.starts_with(MAGIC) {
        match rng.u8(0..4) {
            0 | 1 => return head(rng, bytes),
            2 => return element(rng, bytes),
            _ => {}
        }
    }
    let is_text = std::str::from_utf8(&bytes).is_ok();
    match (is_text, rng.bool()) {
        (true, true) => words(rng, String::from_utf8_lossy(&bytes).into_owned()),
        _ => plain(rng, bytes, other),
    }
}

/// JSON that says something else, and stays JSON of the same structure: what stands under one name takes another's place, once or
/// wherever there is such a name, or becomes an extreme number; an element of a list is lost or doubled.
fn structure(rng: &mut Rng, text: &[u8]) -> Option<Vec<u8>> {
    fn lists<'a>(value: &'a mut Value, found: &mut Vec<&'a mut Vec<Value>>) {
        match value {
            Value::Array(items) => found.push(items),
            Value::Object(items) => items.values_mut().for_each(|item| lists(item, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    fn leaves<'a>(name: &str, value: &'a mut Value, found: &mut Vec<(String, &'a mut Value)>) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| leaves(name, item, found)),
            Value::Object(items) => items.iter_mut().for_each(|(name, item)| leaves(name, item, found)),
            leaf => found.push((name.to_owned(), leaf)),
        }
    }
    let mut value: Value = serde_json::from_slice(text).ok()?;
    if rng.u8(0..4) == 0 {
        let mut found = Vec::new();
        lists(&mut value, &mut found);
        found.retain(|items| !items.is_empty());
        let items = rng.usize(0..found.len().max(1));
        let items = found.get_mut(items)?;
        let (at, again) = (rng.usize(0..items.len()), rng.bool());
        let item = if again { items[at].clone() } else { items.remove(at) };
        if again {
            items.push(item);
        }
    } else {
        let mut found = Vec::new();
        leaves("", &mut value, &mut found);
        let (name, own) =
            found.get(rng.usize(0..found.len().max(1))).map(|(name, own)| (name.clone(), (**own).clone()))?;
        let new = match own.is_number() && rng.bool() {
            true => NUMBERS[rng.usize(0..NUMBERS.len())].into(),
            false => {
                let likes: Vec<&Value> = found
                    .iter()
                    .map(|(_, other)| &**other)
                    .filter(|other| other.is_number() == own.is_number())
                    .collect();
                likes[rng.usize(0..likes.len())].clone()
            }
        };
        let is_all = rng.bool();
        let mut places = found.into_iter().filter(|(other, place)| *other == name && (is_all || **place == own));
        places.by_ref().take(if is_all { usize::MAX } else { 1 }).for_each(|(_, place)| *place = new.clone());
    }
    serde_json::to_vec_pretty(&value).ok()
}

/// Bytes are lost, changed, doubled or come from elsewhere.
fn plain(rng: &mut Rng, mut bytes: Vec<u8>, other: &[u8]) -> Vec<u8> {
    let at = rng.usize(0..bytes.len());
    let end = (at + rng.usize(1..64)).min(bytes.len());
    match rng.u8(0..10) {
        0 => bytes[at] ^= 1 << rng.u8(0..8),
        1 => bytes[at] = rng.u8(..),
        2 => bytes.truncate(at),
        3 => drop(bytes.drain(at..end)),
        4 => {
            let again = bytes[at..end].to_vec();
            bytes.splice(at..at, again);
        }
        5 => bytes[at..end].fill([0, 0xff, b' '][rng.usize(0..3)]),
        6 if !other.is_empty() => {
            bytes.truncate(at);
            bytes.extend_from_slice(&other[rng.usize(0..other.len())..]);
        }
        7 => bytes.splice(at..at, hostile::word(rng).into_bytes()).for_each(drop),
        _ => {
            let number = NUMBERS[rng.usize(0..NUMBERS.len())].to_le_bytes();
            let size = [1, 2, 4, 8][rng.usize(0..4)].min(bytes.len() - at);
            bytes[at..at + size].copy_from_slice(&number[..size]);
        }
    }
    bytes
}

/// Numbers of a text become extreme ones, what stands between quotes becomes hostile, lines are lost and doubled.
fn words(rng: &mut Rng, text: String) -> Vec<u8> {
    let mut spans = Vec::new();
    let is_quoted = rng.bool();
    let mut start = None;
    for (at, byte) in text.bytes().enumerate() {
        let is_part = if is_quoted { byte != b'"' } else { byte.is_ascii_digit() || b".-+e".contains(&byte) };
        match (start, is_part) {
            (None, true) => start = Some(at),
            (Some(first), false) => {
                spans.push(first..at);
                start = None;
            }
            _ => {}
        }
    }
    spans.retain(|span| is_quoted || text[span.clone()].contains(|c: char| c.is_ascii_digit()));
    if text.is_empty() {
        return text.into_bytes();
    }
    if rng.u8(0..4) == 0 || spans.is_empty() {
        let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
        let (at, other) = (rng.usize(0..lines.len()), rng.usize(0..lines.len()));
        match rng.u8(0..3) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(other, lines[at]),
            _ => lines.swap(at, other),
        }
        return lines.concat().into_bytes();
    }
    let span = spans.swap_remove(rng.usize(0..spans.len()));
    let new = match (is_quoted, rng.u8(0..4)) {
        // As JSON writes it, so that it is read.
        (true, 0..3) => serde_json::to_string(&hostile::word(rng)).unwrap_or_default().trim_matches('"').to_owned(),
        _ => WORDS[rng.usize(0..WORDS.len())].to_owned(),
    };
    (text[..span.start].to_owned() + &new + &text[span.end..]).into_bytes()
}

/// The head of an array says something else.
fn head(rng: &mut Rng, bytes: Vec<u8>) -> Vec<u8> {
    let Some((head, numbers)) = split(&bytes) else { return bytes };
    let between = |text: &str, begin: &str, end: char| {
        let start = text.find(begin)? + begin.len();
        Some(start..start + text[start..].find(end)?)
    };
    let new = match rng.u8(0..6) {
        0 => between(&head, "'descr': '", '\'').map(|span| (span, TYPES[rng.usize(0..TYPES.len())].to_owned())),
        1 | 2 => between(&head, "'shape': ", ')')
            .map(|span| (span.start..span.end + 1, SHAPES[rng.usize(0..SHAPES.len())].to_owned())),
        3 => between(&head, "'fortran_order': ", ',').map(|span| (span, "True".to_owned())),
        4 => between(&head, "'descr': '", '\'').map(|span| (span, hostile::word(rng).replace(['\'', '\\'], ""))),
        _ => return words(rng, head).into_iter().chain(numbers.iter().copied()).collect(),
    };
    let Some((span, new)) = new else { return bytes };
    array(&(head[..span.start].to_owned() + &new + &head[span.end..]), numbers)
}

/// The text of an array's head, and the bytes of its numbers.
fn split(bytes: &[u8]) -> Option<(String, &[u8])> {
    let length = usize::from(u16::from_le_bytes(*bytes.get(8..)?.first_chunk()?));
    let (head, numbers) = bytes.get(10..)?.split_at_checked(length)?;
    Some((String::from_utf8_lossy(head).into_owned(), numbers))
}

/// An array with a head of this text.
fn array(head: &str, numbers: &[u8]) -> Vec<u8> {
    let length = u16::try_from(head.len()).unwrap_or(u16::MAX).to_le_bytes();
    [MAGIC, &[1, 0], &length, head.as_bytes(), numbers].concat()
}

/// Some numbers of an array become extreme ones.
fn element(rng: &mut Rng, mut bytes: Vec<u8>) -> Vec<u8> {
    let Some((head, numbers)) = split(&bytes) else { return bytes };
    let size = head.split("'descr': '").nth(1).and_then(|rest| rest.get(2..3)?.parse::<usize>().ok()).unwrap_or(1);
    let (start, count) = (bytes.len() - numbers.len(), numbers.len() / size.max(1));
    for _ in 0..rng.usize(1..4) {
        if count > 0 && size <= 8 {
            let at = start + size * rng.usize(0..count);
            let number = NUMBERS[rng.usize(0..NUMBERS.len())].to_le_bytes();
            bytes[at..at + size].copy_from_slice(&number[..size]);
        }
    }
    bytes
}

/// An archive of which one entry is said to be as large as it can be without being refused for that; what it holds is noise.
fn seeming(rng: &mut Rng, mut entries: Vec<(String, Vec<u8>)>, at: usize) -> Vec<u8> {
    let (own, bytes) = [("|i1", 1), ("<i4", 4), ("<f8", 8), ("<i8", 8)][rng.usize(0..4)];
    let count = [1_000_000, 50_000_000, 400_000_000, 1_000_000_000][rng.usize(0..4)];
    let head = format!("{{'descr': '{own}', 'fortran_order': False, 'shape': ({count},), }}\n");
    let size = u32::try_from(count * bytes + 10 + head.len()).unwrap_or(u32::MAX);
    let mut noise = vec![0; size as usize / DENSEST + 1024];
    rng.fill(&mut noise);
    entries[at].1 = array(&head, &noise);
    let mut forged = archive::archive(&entries, true);
    archive::forge(&mut forged, at, size, [true, true], true);
    forged
}

/// All entries of an archive, or one of them, become so many zeros, of which little is left when they are packed.
fn large(rng: &mut Rng, entries: &mut [(String, Vec<u8>)]) {
    let count = match rng.u8(0..8) {
        0 => rng.usize(8_000_000..30_000_000),
        1..4 => 500_000,
        _ => 20_000,
    };
    let own = ["|i1", "|u1", "|b1"][rng.usize(0..3)];
    let zeros =
        array(&format!("{{'descr': '{own}', 'fortran_order': False, 'shape': ({count},), }}\n"), &vec![0; count]);
    let only = (rng.u8(0..4) == 0).then(|| rng.usize(0..entries.len()));
    for (number, (name, bytes)) in entries.iter_mut().enumerate() {
        if name.ends_with(".npy") && only.is_none_or(|only| only == number) {
            bytes.clone_from(&zeros);
        }
    }
}

/// Entries of an archive are damaged, renamed, lost, doubled, or said to be larger than they are.
fn in_archive(rng: &mut Rng, mut entries: Vec<(String, Vec<u8>)>, other: &[u8]) -> Vec<u8> {
    let at = rng.usize(0..entries.len());
    let is_packed = rng.bool();
    // What an archive says of itself is as small as it is powerful.
    if let Some((_, text)) = entries.iter_mut().find(|(name, _)| name.ends_with(".json"))
        && rng.u8(0..4) > 0
        && let Some(said) = structure(rng, text)
    {
        *text = said;
        return archive::archive(&entries, is_packed);
    }
    match rng.u8(0..17) {
        0..4 => entries[at].1 = once(rng, std::mem::take(&mut entries[at].1), other),
        4 => drop(entries.remove(at)),
        5 => {
            let from = rng.usize(0..entries.len());
            entries[at].1 = entries[from].1.clone();
        }
        6 => {
            let (name, ending) = entries[at].0.rsplit_once('.').unwrap_or((&entries[at].0, ""));
            let name = match rng.u8(0..3) {
                0 => hostile::word(rng),
                1 => name.replace(' ', ""),
                _ => format!("{name}{}", hostile::word(rng)),
            };
            entries[at].0 = format!("{name}.{ending}");
        }
        7..9 => {
            let mut forged = archive::archive(&entries, is_packed);
            let size = NUMBERS[rng.usize(0..NUMBERS.len())] as u32;
            archive::forge(&mut forged, at, size, [rng.bool(), true], rng.u8(0..4) > 0);
            return forged;
        }
        // What only one number speaks of costs nothing to write.
        9..12 => {
            let name = ONE_MORE[rng.usize(0..ONE_MORE.len())];
            let number = [200_000_000_u64, 1_000_000_000, 1 << 30, u64::MAX][rng.usize(0..4)].to_le_bytes();
            let head = "{'descr': '<i8', 'fortran_order': False, 'shape': (), }\n";
            entries.push((format!("{name}.npy"), array(head, &number)));
        }
        12..14 => return seeming(rng, entries, at),
        _ => {
            large(rng, &mut entries);
            return archive::archive(&entries, true);
        }
    }
    archive::archive(&entries, is_packed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_arrays_are_changed_and_stay_heads() {
        let whole = array("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }\n", &[0; 16]);
        let mut shapes = 0;
        for seed in 0..200 {
            let changed = head(&mut Rng::with_seed(seed << 40 | seed), whole.clone());
            let (text, numbers) = split(&changed).unwrap_or_default();
            shapes += usize::from(text.contains("(1000000000,)") && numbers.len() == 16);
        }
        assert!(shapes > 0, "{shapes}");
    }

    #[test]
    fn what_checkpoints_say_is_changed_and_stays_readable() {
        let text = br#"{"position": {"step": 0, "time": 3}, "values": [{"variable": 0, "array": "a"}, {"variable": 1, "array": "z"}]}"#;
        let mut seen = [0; 3];
        for seed in 0..400 {
            let Some(said) = structure(&mut Rng::with_seed(seed), text) else { continue };
            let said: Value = serde_json::from_slice(&said).unwrap();
            let values = said["values"].as_array().unwrap();
            seen[0] += usize::from(values.len() == 2 && values.iter().all(|held| held["array"] == "z"));
            seen[1] += usize::from(said["position"]["time"] == u64::MAX);
            seen[2] += usize::from(values.len() != 2);
        }
        assert!(seen.iter().all(|&count| count > 0), "{seen:?}");
    }

    #[test]
    fn texts_get_hostile_words_that_json_can_hold() {
        let mut held = 0;
        for seed in 0..200 {
            let changed = words(&mut Rng::with_seed(seed), "{\"a\": \"b\", \"c\": [1, 2]}\n".to_owned());
            held += usize::from(serde_json::from_slice::<serde_json::Value>(&changed).is_ok());
        }
        assert!(held > 50, "{held}");
    }
}
