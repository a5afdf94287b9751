//! The programs that are generated: a tree that owns its parts, so that one can be cut out of it.

/// A file with one stencil.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// What stands at file level.
    pub items: Vec<Declaration>,
    /// The stencil's name.
    pub name: String,
    /// What stands in the stencil.
    pub statements: Vec<Statement>,
}

/// What may stand at file level and inside a stencil.
#[derive(Clone, Debug)]
pub enum Declaration {
    /// `param p: int = 3`
    Param {
        /// The name.
        name: String,
        /// `: int`
        typed: Option<&'static str>,
        /// `= 3`
        default: Option<Expr>,
    },
    /// `const c: f32 = 0.1`
    Constant {
        /// The name.
        name: String,
        /// `: f32`
        typed: Option<&'static str>,
        /// The value.
        value: Expr,
    },
    /// `fn f(a, b) { let s = a + b; s / 2 }`
    Function {
        /// The name.
        name: String,
        /// What it takes.
        params: Vec<String>,
        /// What it returns.
        body: Block,
    },
}

/// A statement of a stencil.
#[derive(Clone, Debug)]
pub enum Statement {
    /// `in a, b: f32 on (k) = 0..1`
    Field {
        /// `in`, `out` or `inout`.
        role: &'static str,
        /// The names.
        names: Vec<String>,
        /// `: f32`
        typed: Option<&'static str>,
        /// `on (k)`: what stands in the parentheses.
        place: Option<&'static str>,
        /// `= 0..1`
        range: Option<(Expr, Expr)>,
    },
    /// What may stand at file level too.
    Declare(Declaration),
    /// `let p: f32 = a + b`
    Let(String, Option<&'static str>, Expr),
    /// `r = p`
    Assign(String, Expr),
    /// `sums by level`
    SumsByLevel,
    /// `levels 1..nk`, or `level nk-1`; `i 1..ni`, `j 0` along the other axes.
    Within(char, &'static str, Option<&'static str>),
}

/// `{ let s = a + b; s / 2 }`
#[derive(Clone, Debug)]
pub struct Block {
    /// Names of its own.
    pub lets: Vec<(String, Expr)>,
    /// Its value.
    pub value: Expr,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A number or truth value, without sign.
    Literal(String),
    /// A name.
    Name(String),
    /// `-a` or `!a`
    Prefix(char, Box<Expr>),
    /// `a + b`
    Infix(&'static str, Box<Expr>, Box<Expr>),
    /// `a[i-1, k+n]`: axes, each with what is added to it; behind `l` stands what a level is itself, `a[level nk-1]`.
    Offset(Box<Expr>, Vec<(char, Vec<Term>)>),
    /// `v[n]`
    Part(Box<Expr>, Box<Expr>),
    /// `v.0`
    Component(Box<Expr>, usize),
    /// `f(a, b)`
    Call(String, Vec<Expr>),
    /// `if a { b } else if c { d } else { e }`
    Choose(Vec<(Expr, Block)>, Box<Block>),
    /// `sum(n in 1..=3) { ... }`
    Fold(&'static str, Vec<(String, Expr, Expr)>, Box<Block>),
    /// `[a, b]`
    Vector(Vec<Expr>),
    /// `(a)`, where it is not needed.
    Group(Box<Expr>),
    /// `{ let s = a; s }`
    Block(Box<Block>),
}

/// `+ n` or `- n` in an offset.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// Whether it is subtracted.
    pub minus: bool,
    /// What is added.
    pub value: Expr,
}

impl PartialEq for Block {
    fn eq(&self, other: &Self) -> bool {
        self.lets == other.lets && self.value == other.value
    }
}

impl Expr {
    /// A number or truth value without sign.
    pub fn literal(text: impl ToString) -> Expr {
        Expr::Literal(text.to_string())
    }

    /// A whole number of either sign.
    pub fn whole(x: i64) -> Expr {
        let magnitude = Expr::literal(x.unsigned_abs());
        if x < 0 { Expr::prefix('-', magnitude) } else { magnitude }
    }

    /// A name.
    pub fn name(name: &str) -> Expr {
        Expr::Name(name.to_owned())
    }

    /// `-a` or `!a`
    pub fn prefix(op: char, inner: Expr) -> Expr {
        Expr::Prefix(op, Box::new(inner))
    }

    /// `a + b` and its like.
    pub fn infix(op: &'static str, left: Expr, right: Expr) -> Expr {
        Expr::Infix(op, Box::new(left), Box::new(right))
    }

    /// Whether it is made of literals and operators alone.
    pub fn is_plain(&self) -> bool {
        match self {
            Expr::Literal(_) => true,
            Expr::Prefix(_, inner) | Expr::Group(inner) => inner.is_plain(),
            Expr::Infix(_, left, right) => left.is_plain() && right.is_plain(),
            Expr::Name(_)
            | Expr::Offset(..)
            | Expr::Part(..)
            | Expr::Component(..)
            | Expr::Call(..)
            | Expr::Choose(..)
            | Expr::Fold(..)
            | Expr::Vector(_)
            | Expr::Block(_) => false,
        }
    }

    /// The expressions directly inside, in the order of the text.
    pub fn children_mut(&mut self) -> Vec<&mut Expr> {
        match self {
            Expr::Literal(_) | Expr::Name(_) => Vec::new(),
            Expr::Prefix(_, inner) | Expr::Component(inner, _) | Expr::Group(inner) => vec![inner],
            Expr::Infix(_, left, right) | Expr::Part(left, right) => vec![left, right],
            Expr::Offset(base, axes) => {
                let terms = axes.iter_mut().flat_map(|(_, terms)| terms.iter_mut().map(|term| &mut term.value));
                std::iter::once(&mut **base).chain(terms).collect()
            }
            Expr::Call(_, arguments) | Expr::Vector(arguments) => arguments.iter_mut().collect(),
            Expr::Choose(arms, otherwise) => {
                let mut children = Vec::new();
                for (condition, block) in arms {
                    children.push(condition);
                    children.extend(block.children_mut());
                }
                children.extend(otherwise.children_mut());
                children
            }
            Expr::Fold(_, binders, block) => {
                let mut children: Vec<&mut Expr> = Vec::new();
                for (_, low, high) in binders {
                    children.extend([low, high]);
                }
                children.extend(block.children_mut());
                children
            }
            Expr::Block(block) => block.children_mut(),
        }
    }
}

impl Block {
    /// A block without names of its own.
    pub fn of(value: Expr) -> Block {
        Block { lets: Vec::new(), value }
    }

    /// The expressions directly inside.
    pub fn children_mut(&mut self) -> Vec<&mut Expr> {
        self.lets.iter_mut().map(|(_, value)| value).chain(std::iter::once(&mut self.value)).collect()
    }
}

impl Declaration {
    /// The expressions directly inside.
    pub fn children_mut(&mut self) -> Vec<&mut Expr> {
        match self {
            Declaration::Param { default, .. } => default.iter_mut().collect(),
            Declaration::Constant { value, .. } => vec![value],
            Declaration::Function { body, .. } => body.children_mut(),
        }
    }
}

impl Program {
    /// The outermost expressions, in the order of the text.
    pub fn expressions_mut(&mut self) -> Vec<&mut Expr> {
        let mut all: Vec<&mut Expr> = self.items.iter_mut().flat_map(Declaration::children_mut).collect();
        for statement in &mut self.statements {
            match statement {
                Statement::Field { range, .. } => all.extend(range.iter_mut().flat_map(|(low, high)| [low, high])),
                Statement::Declare(declaration) => all.extend(declaration.children_mut()),
                Statement::Let(.., value) | Statement::Assign(_, value) => all.push(value),
                Statement::SumsByLevel | Statement::Within(..) => {}
            }
        }
        all
    }

    /// Calls `change` with every expression, outer ones first, until it says that it is done.
    pub fn each_expression(&mut self, change: &mut dyn FnMut(&mut Expr) -> bool) {
        fn walk(expr: &mut Expr, change: &mut dyn FnMut(&mut Expr) -> bool) -> bool {
            change(expr) || expr.children_mut().into_iter().any(|child| walk(child, change))
        }
        for expr in self.expressions_mut() {
            if walk(expr, change) {
                return;
            }
        }
    }

    /// How many expressions there are.
    pub fn size(&self) -> usize {
        let mut count = 0;
        self.clone().each_expression(&mut |_| {
            count += 1;
            false
        });
        count
    }
}
