//! The increment turned round: a thread a target. It walks over the elements that lead to it, in the order in which the user
//! numbers them, computes what each adds again, and takes what is added to the slot that it stands in.
//!
//! Nothing is written twice, and nothing races. What elements read of the target itself is read once. Of two paths, as
//! those of an edge to its two cells, a table holds the other cell, and which of the two the target is.

use super::{Additions, Strategy};
use crate::diagnostic::Refusal;
use crate::kernel::MeshData;
use crate::mesh::gather::Gather;
use crate::mesh::group::Group;
use crate::mesh::own::with_levels;
use crate::mesh::rows::led_to;
use crate::mesh::sums::Sums;
use crate::mesh::writer::Writer;
use crate::mesh::{Items, Kernel, MeshChoices, MeshTask, quotient};

/// Each target gathers over the elements that lead to it, and computes their contributions again.
pub struct Owner;

impl Strategy for Owner {
    fn name(&self) -> &'static str {
        "owner"
    }

    fn summary(&self) -> &'static str {
        "each target gathers over the elements that lead to it, and recomputes what they add"
    }

    fn additions(&self) -> Additions {
        Additions::InOrder
    }

    fn has_a_thread_a_target(&self) -> bool {
        true
    }

    fn kernels(&self, task: &MeshTask, choices: &MeshChoices, group: &Group) -> Result<Vec<Kernel>, Refusal> {
        let is_sparse = task.counts.degrees(group).share < 0.5;
        let fields = group.fields();
        let from_zero = !is_sparse && fields.iter().all(|&field| (task.from_zero)(field));
        let gather = Gather::new(task, group, from_zero)?;
        let own = gather.task(task);
        let stencil = own.stencil;
        let set_name = &stencil.mesh.sets[group.target].name;
        let of_levels = |levels: usize| {
            let mut writer = Writer::new(&own, choices, &format!("{}_to_{set_name}", stencil.stencil.name));
            writer.levels = levels;
            writer.share_divisions(quotient::divides(stencil));
            let (target, item) = if is_sparse {
                let n = writer.count("items", MeshData::Items);
                let item = writer.item_below("item", n);
                (led_to(&mut writer, group, item), Some(item))
            } else {
                (writer.thread_of(group.target), None)
            };
            writer.find_level();
            let sums = Sums::new(&mut writer, &fields, target, is_sparse, false);
            gather.write(&mut writer, target, item, &sums);
            writer.own.give_up();
            sums.store(&mut writer, target, &|_| true);
            let what = format!("a thread a {set_name}, which gathers what is added to it");
            let items = if is_sparse { Items::Targets(group.number) } else { Items::Set(group.target, None) };
            let in_place = task.in_place(fields.clone(), is_sparse);
            writer.finish(&what, items, in_place)
        };
        Ok(vec![with_levels(&own, choices, of_levels)])
    }
}
