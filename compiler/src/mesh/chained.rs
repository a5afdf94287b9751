//! The kernel of a chain: a thread an element gathers what calls add to it, and goes on with what others make of that.

use super::gather::Gather;
use super::group::{Group, groups};
use super::own::{Written, with_levels};
use super::sums::Sums;
use super::writer::Writer;
use super::{Items, Kernels, MeshChoices, MeshTask, quotient};
use crate::diagnostic::Refusal;
use crate::ir::FieldId;

/// Returns the kernel of a chain whose stages are `tasks`. Internal fields are not written.
///
/// # Errors
/// Increments come in orders that differ.
pub fn kernels(
    tasks: &[MeshTask],
    is_internal: &dyn Fn(FieldId) -> bool,
    choices: &MeshChoices,
) -> Result<Kernels, Refusal> {
    let mut groups: Vec<Group> = tasks.iter().flat_map(|own| groups(own.stencil)).collect();
    groups.iter_mut().enumerate().for_each(|(number, group)| group.number = number);
    let (mut fields, mut gathers): (Vec<FieldId>, Vec<Gather>) = (Vec::new(), Vec::new());
    for (task, group) in tasks.iter().zip(&groups) {
        let own = group.fields();
        let from_zero = own.iter().all(|&field| (task.from_zero)(field) && !fields.contains(&field));
        gathers.push(Gather::new(task, group, from_zero)?.for_all_targets());
        fields.extend(own.into_iter().filter(|field| !fields.contains(field)).collect::<Vec<_>>());
    }
    let (adding, after) = tasks.split_at(groups.len());
    let stages: Vec<MeshTask> =
        gathers.iter().zip(adding).map(|(gather, own)| gather.task(own)).chain(after.iter().copied()).collect();
    let Some(last) = stages.last() else { return Ok(Kernels { kernels: Vec::new(), groups }) };
    let set = last.stencil.set();
    let names: Vec<&str> = tasks.iter().map(|own| own.stencil.stencil.name.as_str()).collect();
    let of_levels = |levels: usize| {
        let mut writer = Writer::new(&stages[0], choices, &names.join("_"));
        writer.levels = levels;
        writer.share_divisions(stages.iter().any(|own| quotient::divides(own.stencil)));
        let element = writer.thread_of(set);
        writer.find_level();
        let is_seen = |field: FieldId| !is_internal(field);
        // What nobody gets is read, and never written.
        for field in last.in_place(fields.clone(), false) {
            writer.output_if(field, is_seen(field));
        }
        let sums = Sums::new(&mut writer, &fields, element, false, false);
        for (gather, stage) in gathers.iter().zip(&stages) {
            writer.go_on_with(stage, None);
            gather.write(&mut writer, element, None, &sums);
        }
        let after = &stages[gathers.len()..];
        let mut all: Vec<Written> = Vec::new();
        for stage in after {
            writer.go_on_with(stage, Some(element));
            sums.remember(&mut writer);
            let mut written = Written::of(&mut writer, stage.stencil);
            // Before anything is written it has to be known whether all divisions were usual ones.
            written.remember(&mut writer);
            all.push(written);
        }
        writer.own.give_up();
        for (stage, written) in after.iter().zip(&all) {
            writer.go_on_with(stage, Some(element));
            written.store(&mut writer, element, &is_seen);
        }
        sums.store(&mut writer, element, &is_seen);
        let what = format!(
            "a thread a {}, after {}",
            last.stencil.mesh.sets[set].name,
            names[..names.len() - 1].join(" and ")
        );
        let in_place = last.in_place(fields.clone(), false);
        writer.finish(&what, Items::Set(set, None), in_place)
    };
    let kernel = with_levels(&stages[0], choices, of_levels);
    Ok(Kernels { kernels: vec![kernel], groups })
}
