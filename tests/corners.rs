//! Corners that random numbers and random programs seldom come to: what binds tighter, numbers that are none, zeros of both
//! signs, the ends of whole numbers, rows outside the grid.

use crate::common::{lowered, problem, verify_emulated};
use std::collections::BTreeMap;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::scalar::{Real, compare};
use stencilc_compiler::ir::{Function, Precision, Relation};
use stencilc_compiler::plan::Choices;
use stencilc_runtime::emulate::{Compiler, Settings};
use stencilc_runtime::interpreter::interpret;
use stencilc_runtime::problem::{Problem, Request};
use stencilc_runtime::verify::{Expected, Verdict};
use stencilc_runtime::{Array, Data};

/// The IR of an expression: the same for two texts exactly if they mean the same operations.
fn ir(expression: &str, kind: &str) -> String {
    let text =
        format!("stencil s {{ in a; in b; in c; in p, q, r: bool; in m: int; out x: {kind}; x = {expression} }}");
    lowered("s", &text)[0].to_string()
}

#[test]
fn operators_group_as_the_language_says() {
    for (text, grouped) in [
        ("-a**2", "-(a**2)"),
        ("a - b - c", "(a - b) - c"),
        ("a / b / c", "(a / b) / c"),
        ("a / b * c", "(a / b) * c"),
        ("a + b % c", "a + (b % c)"),
        ("a % b * c", "(a % b) * c"),
        ("a - b * c", "a - (b * c)"),
        ("-a * b", "(-a) * b"),
        ("-a - -b", "(-a) - (-b)"),
        ("a * b**-2", "a * (b**(-2))"),
        ("2**3**2 * a", "512 * a"),
        ("a**2**3", "a**8"),
    ] {
        assert_eq!(ir(text, "real"), ir(grouped, "real"), "{text}");
    }
    for (text, grouped) in [
        ("p || q && r", "p || (q && r)"),
        ("p && q || r", "(p && q) || r"),
        ("!p && q", "(!p) && q"),
        ("a < b && b < c", "(a < b) && (b < c)"),
        ("a + b < c * a", "(a + b) < (c * a)"),
        ("-a < b || p", "((-a) < b) || p"),
    ] {
        assert_eq!(ir(text, "bool"), ir(grouped, "bool"), "{text}");
    }
    for relation in ["<", "<=", ">", ">=", "==", "!="] {
        let text = ir(&format!("a {relation} b"), "bool");
        assert!(text.contains(&format!(" a {relation} b\n")), "{text}");
    }
}

#[test]
fn nothing_compares_with_nan_and_zeros_keep_their_sign() {
    use Relation::{Eq, Ge, Gt, Le, Lt, Ne};
    for relation in [Lt, Le, Gt, Ge, Eq, Ne] {
        for (a, b) in [(f64::NAN, 1.0), (1.0, f64::NAN), (f64::NAN, f64::NAN)] {
            assert_eq!(compare(relation, a, b), relation == Ne, "{a} {relation:?} {b}");
        }
        assert_eq!(compare(relation, 0.0, -0.0), matches!(relation, Le | Ge | Eq));
    }
    let sign = |x: f64| f64::call(Function::Sign, [x; 3]);
    assert!(sign(-0.0).is_sign_negative() && sign(0.0).is_sign_positive() && sign(f64::NAN).is_nan());
    assert!(
        f64::call(Function::Max, [0.0, -0.0, 0.0]).is_sign_negative()
            && f64::call(Function::Min, [-0.0, 0.0, 0.0]).is_sign_positive()
    );
}

const REALS: [f64; 12] =
    [0.0, -0.0, 1.0, -1.0, 0.3, -7.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE, 1e-310, 3e38];
const WHOLE: [i32; 12] = [0, 1, -1, 2, -2, 3, -3, 7, 65_536, i32::MAX, i32::MIN, i32::MIN + 1];

/// Every operation that has a corner.
const OPERATIONS: &str = "
const nothing = 0/0
stencil operations {
    in a, b; in m, n: int
    out least, most, signed, rest, copied, fused, quotient, root, lower, upper, chosen, zero
    out lt, le, gt, ge, eq, ne: bool
    out total, difference, product, negated, size, way, by_minus_1, by_3, by_minus_3, by_p, by_q, smaller, larger: int
    param p: int = -2
    param q: int = -1
    least = min(a, b)
    most = max(a, b)
    signed = sign(a)
    rest = a % b
    copied = copysign(a, b)
    fused = fma(a, b, a)
    quotient = a / b
    root = sqrt(a)
    lower = floor(a)
    upper = ceil(a)
    chosen = if a < b { nothing } else if a > b { 1/0 } else { -1/0 }
    zero = if a < b { -0.0 } else { 0.0 }
    lt = a < b
    le = a <= b
    gt = a > b
    ge = a >= b
    eq = a == b
    ne = a != b
    total = m + n
    difference = m - n
    product = m * n
    negated = -m
    size = abs(m)
    way = sign(m)
    by_minus_1 = m % -1
    by_3 = m % 3
    by_minus_3 = m % -3
    by_p = m % p
    by_q = m % q
    smaller = min(m, n)
    larger = max(m, n)
}
";

fn request(stencil: &stencilc_compiler::ir::Stencil, precision: Precision, grid: Grid) -> Request<'_> {
    Request {
        stencil,
        precision,
        contract: true,
        grid: Some(grid),
        adjacency: None,
        arrays: BTreeMap::new(),
        settings: BTreeMap::new(),
        seed: 1,
        cast: stencilc_runtime::Cast::Allowed,
        drawing: stencilc_runtime::Drawing::Everything,
    }
}

#[test]
fn special_numbers_are_the_same_in_kernels() {
    let side = REALS.len();
    let grid = Grid::rows(side, side, 1);
    let stencil = &lowered("operations", OPERATIONS)[0];
    let whole = |of: fn(usize, usize) -> usize| Data::I32((0..side * side).map(|c| WHOLE[of(c, side)]).collect());
    let real = |of: fn(usize, usize) -> usize| Data::F64((0..side * side).map(|c| REALS[of(c, side)]).collect());
    for precision in [Precision::F64, Precision::F32] {
        // The first number varies along i, the second along j: every pair.
        let arrays = [
            ("a", real(|c, side| c % side)),
            ("b", real(|c, side| c / side)),
            ("m", whole(|c, side| c % side)),
            ("n", whole(|c, side| c / side)),
        ];
        let array = |data: Data| Array { shape: vec![1, side, side], data };
        let arrays = arrays.into_iter().map(|(name, data)| (name.to_owned(), array(data))).collect();
        let problem = Problem::new(Request { arrays, ..request(stencil, precision, grid) }).unwrap();
        // `expect` would find fault with so many numbers that are none.
        let mut outputs = problem.outputs.clone();
        interpret(&problem.job(&problem.inputs()), &mut outputs, &|_| {}).unwrap();
        let expected = Expected { outputs, untaken: Vec::new() };
        let choices = [Choices { precision, ..Choices::default() }];
        let how = Settings { optimise: 1, ..Settings::default() };
        let verdicts = verify_emulated(&problem, &expected, &choices, &Compiler::find().unwrap(), &how).unwrap();
        assert!(matches!(verdicts[..], [Verdict::Equal { .. }]), "{precision:?}: {verdicts:?}");
    }
}

/// Rows of `x` are computed from three before the first row of the grid on, and three are kept.
#[test]
fn rows_before_the_first_are_rows_of_their_own() {
    let text = "stencil rows { in a; out r; let x = a[j+3] * 2; r = x[j-3] + 4*x[j-2] + 16*x[j-1] }";
    let problem = problem(&lowered("rows", text)[0], Precision::F64, Grid::rows(5, 12, 2), &[]);
    let mut outputs = problem.outputs.clone();
    interpret(&problem.job(&problem.inputs()), &mut outputs, &|_| {}).unwrap();
    let (a, r) = (problem.inputs[0].as_ref().unwrap(), outputs[1].as_ref().unwrap());
    assert_eq!(problem.region.j, 0..10);
    for cell in problem.region.numbers(problem.grid, problem.stencil.fields.iter().next().unwrap().1.place) {
        let x = |row: usize| a.get(cell + row * 5) * 2.0;
        let expected = 16f64.mul_add(x(2), 4f64.mul_add(x(1), x(0)));
        assert_eq!(r.get(cell), expected, "cell {cell}");
    }
}

#[test]
fn a_parameter_that_divides_a_whole_number_is_not_0() {
    let text = "stencil wheel { in a; out r; param n: int; r = if k % n == 0 { a } else { -a } }";
    let stencil = &lowered("wheel", text)[0];
    let with = |n: &str| {
        let settings = BTreeMap::from([("n".to_owned(), n.to_owned())]);
        Problem::new(Request { settings, ..request(stencil, Precision::F64, Grid::rows(4, 4, 4)) })
    };
    assert!(with("-2").is_ok());
    assert_eq!(with("0").unwrap_err().message, "the parameter `n` is 0, and a remainder divides by it");
}
