//! Messages that name methods of Rust and options of the command line, in words of C.

/// What is said, and what that is in C. Longer ones come first.
const WORDS: &[(&str, &str)] = &[
    ("; `Job::start` copies what lies in another way", "; what lies in another way has to be copied before"),
    ("`Job::start` copies what lies in another way", "copy it before: no arrays are copied silently"),
    (", or `Job::start`, which packs its arrays", ""),
    (", or take `Job::start`, which packs its arrays", ""),
    (", or `Job::start`, which brings arrays there", ""),
    ("start it: `Job::start`", "begin it: stencilc_run_begin"),
    ("give one: `Domain::Mesh { mesh, levels }`", "give one, of stencilc_mesh_read or stencilc_mesh_make"),
    ("fields are arrays: `get`", "fields are arrays: stencilc_run_get"),
    ("it has one once it is computed: `step`, or `finish`", "it has one once it is computed: stencilc_run_step"),
    (
        "a checkpoint is written by `run --checkpoint FILE`; without one, leave out --resume",
        "stencilc_run_save writes one",
    ),
    ("give --levels N", "call stencilc_set_levels"),
    ("give the same --levels", "give the same number to stencilc_set_levels"),
    ("fewer --levels", "fewer levels"),
    ("leave out --levels", "leave out stencilc_set_levels"),
    ("give fewer --gpus", "give a smaller number to stencilc_set_devices"),
    ("give at most --gpus ", "give stencilc_set_devices at most "),
    (": --gpus says how many", ": stencilc_set_devices says how many"),
    ("leave out --gpus", "leave out stencilc_set_devices"),
    ("; or --precision f64, if the field is `real`", "; or choose STENCILC_F64, if the field is `real`"),
    ("; or --precision f64", "; or choose STENCILC_F64"),
    ("or --precision f32", "or STENCILC_F32"),
    ("give the same --precision", "give stencilc_set_precision the same"),
    ("give the same --mesh", "give the same mesh"),
    ("give a larger --grid", "give larger arrays"),
    (
        "save it as truth values, in NumPy by `.astype(bool)`; or give --cast, which takes 0 for false",
        "convert it to bytes of 0 and 1",
    ),
    ("give --cast to round it", "round it"),
    ("give --cast to convert it, which cuts fractions off", "convert it to whole numbers"),
    ("give --cast to convert it, which may round", "convert it"),
    ("; `stencilc list stencils` shows those that come along", ", or the name of one that comes along"),
    ("; `stencilc mesh make` writes some", ""),
    ("than the file says?", "than is said?"),
    (
        "do its numbers count from 1? numbers of elements count from 0: subtract 1",
        "do its numbers count from 1? give 1 as `first`",
    ),
    ("make another one: `Job::call`", "make another one: stencilc_bind"),
    ("lend it by `Lent::write`", "lend it for STENCILC_WRITE"),
    ("give one: --set ", "set it by stencilc_set_real, stencilc_set_int or stencilc_set_bool: "),
    ("give --set ", "call stencilc_set_real, stencilc_set_int or stencilc_set_bool: "),
    ("--set ", "stencilc_set_real, stencilc_set_int or stencilc_set_bool: "),
    ("give --grid NIxNJxNK (halo included), or the inputs as arrays", "lend the inputs as arrays"),
];

/// A message in words of C. Lines of a text that it shows, and what it quotes, are the user's and stay.
pub fn in_c(text: &str) -> String {
    let lines = text.lines().map(|line| if is_shown(line) { line.to_owned() } else { line_in_c(line) });
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether a line shows one of the text that is wrong, `12 │ b = a`, or names its file, `╭▸ a.stn:12:5`.
fn is_shown(line: &str) -> bool {
    let begun = line.trim_start();
    begun.starts_with("╭▸")
        || begun.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start().starts_with('│')
            && begun.starts_with(|c: char| c.is_ascii_digit())
}

fn line_in_c(line: &str) -> String {
    let (line, quoted) = without_quotes(line);
    let said = WORDS.iter().fold(without_files(without_drawing(&line)), |said, (from, to)| said.replace(from, to));
    quoted.iter().enumerate().fold(said, |said, (number, quoted)| said.replace(&mark(number), quoted))
}

/// What stands for something that is quoted: characters that no text of ours has.
fn mark(number: usize) -> String {
    format!("\u{e000}{number}\u{e001}")
}

/// A line without what it quotes, `` `like this` ``, but for what is ours; and what that was.
fn without_quotes(line: &str) -> (String, Vec<&str>) {
    let (mut said, mut quoted) = (String::new(), Vec::new());
    let mut rest = line;
    while let Some((before, from)) = rest.split_once('`') {
        let Some((own, after)) = from.split_once('`') else { break };
        said.push_str(before);
        let whole = &rest[before.len()..rest.len() - after.len()];
        if WORDS.iter().any(|(from, _)| from.contains(whole)) {
            said.push_str(whole);
        } else {
            said.push_str(&format!("`{}`", mark(quoted.len())));
            quoted.push(own);
        }
        rest = after;
    }
    said.push_str(rest);
    (said, quoted)
}

/// Nothing is drawn at random for C.
fn without_drawing(line: &str) -> &str {
    line.split_once("; or let ").map_or(line, |(before, _)| before)
}

/// Arrays that are named, where the command line names files: `` `a` `` for `--in a=a.npy`.
fn without_files(text: &str) -> String {
    let mut parts = text.split("--in ");
    let mut said = parts.next().unwrap_or_default().to_owned();
    for (number, part) in parts.enumerate() {
        if number > 0 && said.ends_with("` ") {
            said.insert(said.len() - 1, ',');
        }
        let end = part.find(|c: char| c.is_whitespace() || ",;)".contains(c)).unwrap_or(part.len());
        let (given, rest) = part.split_at(end);
        said += &match given.split_once('=') {
            Some((name, _)) => format!("an array called `{name}`{rest}"),
            None => format!("an array {part}"),
        };
    }
    said
}

#[cfg(test)]
mod tests {
    use super::in_c;

    #[test]
    fn nothing_is_said_of_rust() {
        let said = in_c("one distance for all; `Job::start` copies what lies in another way");
        assert_eq!(said, "one distance for all; what lies in another way has to be copied before");
        assert_eq!(
            in_c("give it: --in heat=heat.npy; or let it be drawn at random: --draw"),
            "give it: an array called `heat`"
        );
        assert_eq!(in_c("them: --in a=a.npy --in b=b.npy"), "them: an array called `a`, an array called `b`");
        assert_eq!(in_c("them: --in a=a.npy, --in b=b.npy"), "them: an array called `a`, an array called `b`");
        assert_eq!(in_c("leave it, or take `Job::start`, which packs its arrays"), "leave it");
        assert_eq!(
            in_c("`n` has no value\nhelp: give one: --set n=1, or `x`; or let it be drawn: --draw"),
            "`n` has no value\nhelp: set it by stencilc_set_real, stencilc_set_int or stencilc_set_bool: n=1, or `x`"
        );
    }

    /// What users have written stays as it is, though it may say what would be rewritten.
    #[test]
    fn what_is_of_the_user_stays() {
        for shown in [
            "error: something\n  ╭▸ give --levels N.stn:1:3\n  │\n1 │ b = a // --set n; or let it be, --in x=x.npy\n  ╰╴    ━ here",
            "12 │ // give --cast to round it",
            "`--set n=1; or let` is no value for the parameter `--in a=b`",
            "`leave out --gpus` and `give --levels N`, `fewer --levels`",
            "a ` alone, and \u{e000}0\u{e001}",
        ] {
            assert_eq!(in_c(shown), shown);
        }
        // Beside what is ours.
        assert_eq!(
            in_c("`--set a` is none; leave out --gpus, `--set b` or `Job::start`"),
            "`--set a` is none; leave out stencilc_set_devices, `--set b` or `Job::start`"
        );
        assert_eq!(in_c("1 │ --set a\n  │ ━ leave out --gpus"), "1 │ --set a\n  │ ━ leave out stencilc_set_devices");
    }
}
