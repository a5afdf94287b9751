//! The call that makes a kernel again.

use super::cases::Case;
use super::kernels::Facts;
use stencilc_compiler::grid::Form;
use stencilc_compiler::plan::Choices;
use stencilc_compiler::text::ShellWord;
use stencilc_runtime::bench::rows::{Row, Subject};

/// A call: what all rows of a case begin and end with, and in between, what chooses the kernel.
pub struct Call {
    /// `stencilc build laplap`
    pub head: String,
    /// `--access idxvar --storage regular --precision f64`
    pub options: String,
    /// `--grid 512x512x64`
    pub tail: String,
}

impl Call {
    /// All of it.
    pub fn whole(&self) -> String {
        let parts = [&self.head, &self.options, &self.tail].into_iter().filter(|part| !part.is_empty());
        parts.map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

/// The call that builds a row's kernel, or runs the interpreter. Where little is known of the stencil, all is given.
pub fn build(case: &Case, row: &Row, facts: &Facts) -> Call {
    let subject = &row.subject;
    let mut head = vec![ShellWord::path(&case.subject().file).to_string()];
    if facts.stencils != Some(1) {
        head.push(format!("--stencil {}", ShellWord::new(&subject.stencil)));
    }
    let mut tail = match file_of(subject) {
        Some(file) => format!("--grid {} --levels {}", ShellWord::path(file), subject.extents.nk),
        None => format!("--grid {}", subject.extents),
    };
    for (name, value) in &subject.parameters {
        if facts.sets.as_ref().is_none_or(|sets| sets.contains(name)) {
            tail.push_str(&format!(" --set {}={}", ShellWord::new(name), ShellWord::new(value)));
        }
    }
    let head = head.join(" ");
    match &row.kernel.choices {
        Some(choices) => Call { head: format!("stencilc build {head}"), options: choices.words(), tail },
        None => {
            let options = format!("--device cpu --precision {}", subject.precision.name());
            Call { head: format!("stencilc run {head}"), options, tail }
        }
    }
}

/// What is chosen beside what has a column of its own: storage, fastest axis, neighbours, layout, fields, strategy, block, levels and
/// cells a thread.
pub fn others(choices: &Choices) -> String {
    let usual = Choices::default();
    let plain = Choices {
        fastest: usual.fastest,
        neighbors: usual.neighbors,
        layout: usual.layout,
        fields: usual.fields,
        block: Choices::usual_block(&choices.access),
        knobs: usual.knobs,
        ..choices.clone()
    };
    let always = Choices {
        access: choices.access.clone(),
        storage: choices.storage.clone(),
        block: plain.block,
        precision: choices.precision,
        ..Choices::default()
    };
    let words = plain.words();
    words.strip_prefix(&always.words()).unwrap_or(&words).trim().to_owned()
}

/// The file that a grid without rows is from.
pub fn file_of(subject: &Subject) -> Option<&str> {
    let levels = format!(" x {}", subject.extents.nk);
    (subject.extents.form == Form::Cells).then(|| subject.grid.strip_suffix(&levels).unwrap_or(&subject.grid))
}

#[cfg(test)]
mod tests {
    use super::super::cases::{self, tests::row};
    use super::*;
    use serde_json::json;

    fn whole(row: Row, facts: &Facts) -> String {
        let rows = [row];
        let case = &cases::of(&rows)[0];
        build(case, case.rows[0].1, facts).whole()
    }

    #[test]
    fn calls_are_what_one_would_type() {
        let choices =
            Choices { access: "zloop".into(), block: [128, 1, 1], share: vec!["a b.stn".into()], ..Choices::default() };
        let facts = Facts { sets: Some(vec!["dt".to_owned()]), stencils: Some(1), ..Facts::default() };
        let own = ("/kernel/choices", json!(choices));
        let parameters = ("/subject/parameters", json!({"dt": "0.5", "x": "1"}));
        assert_eq!(
            whole(row("", 1.0, &[own.clone(), parameters.clone()]), &facts),
            "stencilc build laplap --access zloop --storage regular --precision f64 --share 'a b.stn' --block 128x1x1 \
             --grid 9x6x3 --set dt=0.5"
        );
        let changes = [
            own,
            parameters,
            ("/subject/file", json!("it's; rm -rf *.stn")),
            ("/subject/extents", json!({"ni": 54, "nj": 1, "nk": 3, "form": "cells"})),
            ("/subject/grid", json!("my grids/quad.npz x 3")),
        ];
        let call = whole(row("", 1.0, &changes), &Facts::default());
        assert!(
            call.starts_with(r#"stencilc build 'it'"'"'s; rm -rf *.stn' --stencil laplap --access zloop "#),
            "{call}"
        );
        assert!(call.ends_with(" --grid 'my grids/quad.npz' --levels 3 --set dt=0.5 --set x=1"), "{call}");
        assert_eq!(whole(row("", 1.0, &[]), &facts), "stencilc run laplap --device cpu --precision f64 --grid 9x6x3");
    }

    #[test]
    fn what_has_no_column_is_told() {
        let plain =
            Choices { access: "tile".into(), layout: "hilbert".into(), ..Choices::default() }.with("tile", [2, 4]);
        assert_eq!(others(&plain), "");
        assert_eq!(others(&Choices { run_width: 8, wide: true, ..plain }), "--run-width 8 --index 64");
    }
}
