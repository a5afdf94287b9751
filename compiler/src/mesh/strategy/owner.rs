//! The increment turned round: a thread a target. It walks over the elements that lead to it, in the order in which the user
//! numbers them, computes what each adds again, and takes what is added to the slot that it stands in.
//!
//! Nothing is written twice, and nothing races. What elements read of the target itself is read once. Of two paths, as
//! those of an edge to its two cells, a table holds the other cell, and which of the two the target is.

use super::{Additions, Strategy};
use crate::diagnostic::Refusal;
use crate::mesh::emit::Emitter;
use crate::mesh::group::Group;
use crate::mesh::sums::Sums;
use crate::mesh::walk::Walk;
use crate::mesh::{Choices, Items, Kernel, Subject, Table, What, quotient};

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

    fn kernels(&self, subject: &Subject, choices: &Choices, group: &Group) -> Result<Vec<Kernel>, Refusal> {
        Ok(vec![kernel(subject, choices, group)?])
    }
}

/// The kernel of a group.
///
/// # Errors
/// The increments of its fields come in orders that differ.
fn kernel(subject: &Subject, choices: &Choices, group: &Group) -> Result<Kernel, Refusal> {
    let is_sparse = subject.degrees(group).share < 0.5;
    let fields = group.fields();
    let from_zero = !is_sparse && fields.iter().all(|&field| (subject.from_zero)(field));
    let walk = Walk::new(subject, group, from_zero)?;
    let own = walk.subject(subject);
    let stencil = own.stencil;
    let mut emitter = Emitter::new(&own, choices);
    emitter.share_divisions(quotient::divides(stencil));
    let set_name = &stencil.mesh.sets[group.target].name;
    let (target, item) = if is_sparse {
        let (item, n) = (emitter.names.internal("item"), emitter.parameter("items", "int", What::Items));
        let table = What::Table(group.number, Table::Targets);
        let targets = emitter.parameter(&format!("{set_name}_led_to"), "const int*", table);
        emitter.line(format!("const int {item} = blockIdx.x * {} + threadIdx.x;", choices.block));
        emitter.line(format!("if ({item} >= {n}) {}", emitter.leave()));
        let target = emitter.element_of(group.target);
        emitter.line(format!("const int {target} = {targets}[{item}];"));
        (target, Some(item))
    } else {
        (emitter.thread_of(group.target), None)
    };
    emitter.level_line();
    let sums = Sums::new(&mut emitter, &fields, &target, is_sparse);
    let is_led_to = walk.write(&mut emitter, &target, item.as_deref(), &sums);
    emitter.leave_if_unusual();
    sums.store(&mut emitter, &target, &|_| true, &is_led_to);
    let name = emitter.names.declared(&format!("{}_to_{set_name}", stencil.stencil.name));
    let what = format!("a thread a {set_name}, which gathers what is added to it");
    let (text, parameters) = emitter.text(&name, &what, &[]);
    let items = if is_sparse { Items::Targets(group.number) } else { Items::Set(group.target) };
    let in_place = fields.into_iter().filter(|&field| is_sparse || !(subject.from_zero)(field)).collect();
    Ok(Kernel { name, text, parameters, items, block: choices.block, in_place })
}
