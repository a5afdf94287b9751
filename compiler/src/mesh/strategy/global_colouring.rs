//! A thread an element of one colour: no two elements of a launch lead to the same target, and each adds as to any other number.

use super::{Additions, Strategy, values};
use crate::diagnostic::Refusal;
use crate::kernel::build::{Computing, Making};
use crate::kernel::{MeshData, MeshTable};
use crate::mesh::group::Group;
use crate::mesh::sums::add_to;
use crate::mesh::writer::Writer;
use crate::mesh::{Items, Kernel, MeshChoices, MeshTask};

/// Elements are launched colour by colour; no two of a colour lead to the same target.
pub struct GlobalColouring;

impl Strategy for GlobalColouring {
    fn name(&self) -> &'static str {
        "global-colouring"
    }

    fn summary(&self) -> &'static str {
        "elements of one colour, of which no two add to the same target, at once"
    }

    fn additions(&self) -> Additions {
        Additions::SameEveryTime
    }

    fn kernels(&self, task: &MeshTask, choices: &MeshChoices, group: &Group) -> Result<Vec<Kernel>, Refusal> {
        let (stencil, set) = (task.stencil, task.stencil.set());
        let mut writer = Writer::new(task, choices, &format!("{}_scatter", stencil.stencil.name));
        let n = writer.count("items", MeshData::Items);
        let first = writer.count("first", MeshData::First);
        let coloured = writer.table("coloured", MeshData::Table(group.number, MeshTable::Coloured));
        let item = writer.item_below("item", n);
        let element = writer.own.name(&stencil.mesh.sets[set].name, coloured.at(first.plus(item)));
        writer.find_level();
        writer.set_index(&[], element);
        let values = values(&mut writer, group);
        for (number, path) in group.paths.iter().enumerate() {
            let to = writer.raw(path.hops());
            let is_there = writer.presence(path.hops(), to);
            writer.when_if(is_there, |writer| {
                for (add, &value) in group.adds.iter().zip(&values).filter(|(add, _)| add.path == number) {
                    let array = writer.output(add.field);
                    let index = writer.index_at(add.field, (Some(to), 0), add.part as usize);
                    add_to(writer, add.field, array, index, value);
                }
            });
        }
        let items = Items::Colours(group.number);
        Ok(vec![writer.finish("a thread an element of one colour", items, group.fields())])
    }
}
