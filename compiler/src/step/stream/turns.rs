//! The text of a kernel of many steps, around that of a warp's rows.

use super::super::Parameter;
use super::super::write::Writer;
use super::{Carry, LANES, Shape};
use crate::kernel::{Meaning, StepData};
use crate::names::Identifier;

/// The number of a warp, in blocks of so many.
pub fn warp_text(warps_of_block: usize) -> String {
    match warps_of_block {
        1 => "blockIdx.x".to_owned(),
        _ => format!("blockIdx.x * {warps_of_block} + threadIdx.x / 32"),
    }
}

/// Name and text of the kernel that calls the function `rows` for every one of `warps` warps, step after step. Takes the
/// parameters that it has beyond those of the function.
pub fn turns(
    writer: &mut Writer,
    rows: &str,
    carry: &[Carry],
    shape: &Shape,
    warps: u128,
) -> (Identifier, Vec<String>) {
    let name = writer.names.declared(&format!("{}_persistent", writer.subject.stencil.name));
    let [step, warp] = writer.names.internals(["step", "warp"]);
    let mut arguments: Vec<String> = writer.parameters.iter().map(|parameter| parameter.name.to_string()).collect();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let steps = writer.names.declared("steps");
    for &(to, from) in carry {
        let place = |meaning: Meaning| writer.parameters.iter().position(|parameter| parameter.meaning == meaning);
        let (read, written) = (place(Meaning::Input(from)), place(Meaning::Output(to)));
        let Some(written) = written else { continue };
        let (output, c_type) = (writer.parameters[written].name.clone(), writer.parameters[written].c_type.clone());
        let spare = writer.names.declared(&format!("{output}_spare"));
        let turn = writer.names.fresh(&format!("{output}_of_step"));
        writer.parameters.push(Parameter {
            name: spare.clone(),
            c_type: c_type.clone(),
            meaning: Meaning::Step(StepData::Spare(to)),
        });
        before.push(format!("    {c_type} {turn} = {steps} % 2 == 1 ? {output} : {spare};"));
        arguments[written] = turn.clone();
        if let Some(read) = read {
            let input = writer.parameters[read].name.clone();
            let own = writer.names.fresh(&format!("{input}_of_step"));
            before.push(format!("    {} {own} = {input};", writer.parameters[read].c_type));
            after.push(format!("        {own} = {turn};"));
            arguments[read] = own;
        }
        after.push(format!("        {turn} = {turn} == {output} ? {spare} : {output};"));
    }
    writer.parameters.push(Parameter {
        name: steps.clone(),
        c_type: "int".into(),
        meaning: Meaning::Step(StepData::Count),
    });
    let barrier = writer.names.declared("barrier");
    writer.parameters.push(Parameter {
        name: barrier.clone(),
        c_type: "unsigned*".into(),
        meaning: Meaning::Step(StepData::Barrier),
    });
    arguments.push(warp.clone());
    let warps_of_block = shape.block / LANES;
    let mut lines = vec![
        format!("extern \"C\" __global__ void __launch_bounds__({})", shape.block),
        format!("{name}({})", writer.signature(false).join(",\n    ")),
        "{".to_owned(),
        "    // Steps write the output and what is spare in turn, the last one the output.".to_owned(),
    ];
    lines.extend(before);
    lines.push("#pragma unroll 1".to_owned());
    lines.push(format!("    for (int {step} = 0; {step} < {steps}; ++{step}) {{"));
    lines.push("#pragma unroll 1".to_owned());
    lines.push(format!(
        "        for (int {warp} = {}; {warp} < {warps}; {warp} += gridDim.x * {warps_of_block})",
        warp_text(warps_of_block)
    ));
    lines.push(format!("            {rows}({});", arguments.join(", ")));
    lines.push(format!("        if ({step} + 1 < {steps}) grid_barrier({barrier});"));
    lines.extend(after);
    lines.push("    }".to_owned());
    lines.push("}".to_owned());
    (name, lines)
}
