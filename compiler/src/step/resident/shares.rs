//! Which steps of which planes a cluster computes.

use super::print::Printer;

impl Printer<'_> {
    /// Lines before the loop over a cluster's planes, the head of that loop, and its first line.
    ///
    /// A share is at least as long as a plane's steps. So a plane is in two shares at most, and the cluster that has its first
    /// steps computes them first of all, no later than the other needs them, which computes its last steps last of all.
    pub fn shares(&mut self, k: &str, first_step: &str, last_step: &str, steps: &str) -> (Vec<String>, String, String) {
        let (planes, blocks) = (self.writer.subject.extents[2], self.shape.blocks);
        let [clusters, all, share, begin, end, first_plane, last_plane, before, after] = self.writer.names.internals([
            "clusters",
            "all",
            "share",
            "begin",
            "end",
            "first_plane",
            "last_plane",
            "first_of_all",
            "last_of_all",
        ]);
        let setup = vec![
            "// All steps of all planes are shared evenly; a share ends amid a plane, and the next cluster goes on."
                .to_owned(),
            format!("const int {clusters} = gridDim.x / {blocks};"),
            format!("const long long {all} = {planes}LL * {steps};"),
            format!("long long {share} = ({all} + {clusters} - 1) / {clusters};"),
            format!("if ({share} < {steps}) {share} = {steps};"),
            format!("long long {begin} = blockIdx.x / {blocks} * {share};"),
            format!("if ({begin} > {all}) {begin} = {all};"),
            format!("const long long {end} = {all} - {begin} < {share} ? {all} : {begin} + {share};"),
            format!("const int {first_plane} = int({begin} / {steps}), {before} = int({begin} % {steps});"),
            format!("const int {last_plane} = int(({end} - 1) / {steps}), {after} = int(({end} - 1) % {steps}) + 1;"),
        ];
        let head = format!("for (int {k} = {last_plane}; {k} >= {first_plane}; --{k})");
        let first = format!(
            "const int {first_step} = {k} == {first_plane} ? {before} : 0, {last_step} = {k} == {last_plane} ? {after} : {steps};"
        );
        (setup, head, first)
    }
}
