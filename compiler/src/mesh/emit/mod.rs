//! The text of a kernel: its lines, names and parameters, and what is known by name in them.

mod elements;
mod numbers;
mod values;

use super::ends::Ends;
use super::{Choices, Parameter, Subject, What, mirror, quotient};
use crate::cuda::expression::{Helpers, computing_type};
use crate::cuda::prelude;
use crate::device;
use crate::ir::{DefId, FieldId, Hop, Kind, SetId};
use crate::names::{Identifier, Names};
use crate::text::Comment;
use std::collections::HashMap;

/// Where a value is looked at: hops from the element at hand, and levels away.
pub type At = (Vec<Hop>, i32);

/// What is known by name in a block of code.
#[derive(Default)]
struct Scope {
    /// Numbers of elements; -1 is a hole.
    raw: HashMap<Vec<Hop>, String>,
    /// The same, and some element where there is a hole.
    index: HashMap<Vec<Hop>, String>,
    reads: HashMap<(FieldId, At, u32), String>,
    values: HashMap<(DefId, At), String>,
    /// Names of the inverses of divisors.
    inverses: HashMap<String, String>,
}

/// Writes the text of one kernel.
pub struct Emitter<'a> {
    pub subject: &'a Subject<'a>,
    pub choices: &'a Choices,
    pub names: Names,
    /// The user's names, as they are in the text.
    users: HashMap<String, Identifier>,
    /// By set: the name of the thread's own element.
    elements: HashMap<SetId, String>,
    pub parameters: Vec<Parameter>,
    pub lines: Vec<String>,
    /// The maps to the thread's own element and to the other one, if it computes what depends on which of two the own one is.
    pub ends: Option<Ends>,
    /// Where the element at hand stands in tables that are in the order of pieces, if there are any.
    pub in_piece: Option<String>,
    /// Whether divisions share what they can, and the kernel is a function that says whether all were usual ones.
    is_quick: bool,
    depth: usize,
    helpers: Helpers,
    scopes: Vec<Scope>,
    k: String,
}

impl<'a> Emitter<'a> {
    /// For a kernel of a stencil. The user's names come first, so that they stay as they are.
    pub fn new(subject: &'a Subject<'a>, choices: &'a Choices) -> Self {
        let mut names = Names::default();
        let stencil = &subject.stencil.stencil;
        let fields = stencil.fields.iter().map(|(_, field)| &field.name);
        let params = stencil.params.iter().map(|(_, param)| &param.name);
        let users = fields.chain(params).map(|name| (name.clone(), names.declared(name))).collect();
        let k = names.internal("k");
        Self {
            subject,
            choices,
            names,
            users,
            elements: HashMap::new(),
            parameters: Vec::new(),
            lines: Vec::new(),
            ends: None,
            in_piece: None,
            is_quick: false,
            depth: 1,
            helpers: Helpers::new(),
            scopes: vec![Scope::default()],
            k,
        }
    }

    /// Lets divisions share what they can, if there are any.
    pub fn share_divisions(&mut self, divides: bool) {
        self.is_quick = divides;
        if self.is_quick {
            let is_usual = self.names.internal("is_usual");
            self.line(format!("bool {is_usual} = true;"));
        }
    }

    /// Leaves before anything is written, if a division was not a usual one.
    pub fn leave_if_unusual(&mut self) {
        if self.is_quick {
            let (is_quick, is_usual) = (self.names.internal("is_quick"), self.names.internal("is_usual"));
            self.line(format!("if ({is_quick} && !{is_usual}) return false;"));
        }
    }

    /// Adds a line.
    pub fn line(&mut self, text: impl AsRef<str>) {
        self.lines.push(format!("{}{}", "    ".repeat(self.depth), text.as_ref()));
    }

    /// Begins a block of code after a line; what is named in it is forgotten at its end.
    pub fn open(&mut self, head: &str) {
        self.line(format!("{head} {{"));
        self.depth += 1;
        self.scopes.push(Scope::default());
    }

    /// Ends it.
    pub fn close(&mut self) {
        self.scopes.pop();
        self.depth -= 1;
        self.line("}");
    }

    /// The parameter that is `what`.
    pub fn parameter(&mut self, wish: &str, c_type: &str, what: What) -> String {
        if let Some(known) = self.parameters.iter().find(|own| own.what == what) {
            return known.name.to_string();
        }
        let is_users = match &what {
            What::Input(_) | What::Param(_) | What::Leaves(_) => true,
            What::Output(field) => !self.subject.stencil.stencil.fields[*field].role.is_read(),
            _ => false,
        };
        // The user's own names are theirs, as far as C++ lets them.
        let name = match self.users.get(wish) {
            Some(known) if is_users => known.clone(),
            _ => self.names.declared(wish),
        };
        let text = name.to_string();
        self.parameters.push(Parameter { name, c_type: c_type.to_owned(), what });
        text
    }

    fn find<'s, T: ?Sized>(&'s self, look: impl Fn(&'s Scope) -> Option<&'s T>) -> Option<&'s T> {
        self.scopes.iter().rev().find_map(look)
    }

    /// Goes on with another stencil over the same fields and parameters; over the thread's own element, if that is named. What is known
    /// by paths and definitions is forgotten, but what was read of the own element is known.
    pub fn go_on_with(&mut self, subject: &'a Subject<'a>, element: Option<&str>) {
        let mut scope = Scope::default();
        let own_end = self.ends.map(|ends| vec![ends.own]);
        for own in std::mem::take(&mut self.scopes) {
            scope.inverses.extend(own.inverses);
            for ((field, (hops, level), part), name) in own.reads {
                if element.is_some() && (hops.is_empty() || Some(&hops) == own_end.as_ref()) {
                    scope.reads.insert((field, (Vec::new(), level), part), name.clone());
                }
                if Some(&hops) == own_end.as_ref() {
                    scope.reads.insert((field, (hops, level), part), name);
                }
            }
        }
        self.subject = subject;
        self.scopes = vec![scope];
        if let Some(element) = element {
            self.set_index(&[], element);
        }
    }

    /// The statement that ends a thread.
    pub fn leave(&self) -> &'static str {
        if self.is_quick { "return true;" } else { "return;" }
    }

    /// `const int k = blockIdx.y;`, if there are levels.
    pub fn level_line(&mut self) {
        if self.subject.stencil.mesh.levels {
            let first = self.subject.computed.start;
            let from = if first == 0 { "blockIdx.y".to_owned() } else { format!("blockIdx.y + {first}") };
            self.line(format!("const int {} = {from};", self.k));
        }
    }

    /// The type that numbers of a kind are computed in.
    pub fn c_type(&self, kind: Kind) -> &'static str {
        computing_type(kind, self.subject.precision)
    }

    /// The whole text: comment, functions, head and body.
    pub fn text(mut self, name: &Identifier, what: &str, functions_before: &[&str]) -> (String, Vec<Parameter>) {
        let Subject { stencil, precision, .. } = *self.subject;
        let Choices { layout, block, blocks_at_once, .. } = *self.choices;
        let mut head = String::from("/*\n");
        let over = format!("{}.{}", stencil.mesh.name, stencil.mesh.sets[stencil.set()].name);
        let mut comment = vec![Comment::new(format!("{} over {over}: {what}.", stencil.stencil.name))];
        comment.extend(stencil.stencil.doc.comments());
        comment.push(Comment::new(format!("Layout {}, {}.", layout.name(), precision.name())));
        let contraction = "Exact only without contraction: nvcc -fmad=false, NVRTC --fmad=false.";
        comment.extend(["", contraction].map(Comment::new));
        for line in comment {
            head.push_str(if line.is_empty() { " *" } else { " * " });
            head.push_str(&format!("{line}\n"));
        }
        head.push_str(" */\n");
        let mut text = String::new();
        for line in prelude::functions(&self.helpers, precision) {
            text.push_str(&line);
            text.push('\n');
        }
        for lines in functions_before {
            text.push_str(lines);
        }
        let bounds = match blocks_at_once {
            0 => format!("__launch_bounds__({block})"),
            blocks => format!("__launch_bounds__({block}, {blocks})"),
        };
        let parameters: Vec<String> = self
            .parameters
            .iter()
            .map(|own| match own.c_type.strip_suffix('*') {
                Some(_) => format!("{} __restrict__ {}", own.c_type, own.name),
                None => format!("const {} {}", own.c_type, own.name),
            })
            .collect();
        let signature = format!("extern \"C\" __global__ void {bounds}\n{name}({})\n{{\n", parameters.join(",\n    "));
        let mut lines = self.lines.join("\n");
        lines.push('\n');
        if self.ends.is_some() {
            text.push_str(mirror::function(precision));
        }
        if self.is_quick {
            let arguments: Vec<&str> = self.parameters.iter().map(|own| &*own.name).collect();
            let (parameters, arguments) = (parameters.join(",\n    "), arguments.join(", "));
            let is_quick = self.names.internal("is_quick");
            text.push_str(quotient::functions(precision));
            text.push_str(&format!("static __device__ __forceinline__ bool {name}_if(const bool {is_quick},\n    {parameters})\n{{\n{lines}    return true;\n}}\n"));
            text.push_str("// Where a division is not a usual one.\n");
            text.push_str(&format!("static __device__ __noinline__ void {name}_again({parameters})\n{{\n    {name}_if(false, {arguments});\n}}\n"));
            text.push_str(&format!(
                "{signature}    if (!{name}_if(true, {arguments})) {name}_again({arguments});\n}}\n"
            ));
        } else {
            text.push_str(&format!("{signature}{lines}}}\n"));
        }
        // What a comment says is no use of an operation.
        let operations: String = device::lines(&text).iter().map(|line| format!("{line}\n")).collect();
        (operations + &head + &text, self.parameters)
    }
}
