//! What a user reads when something is wrong: each wrong program with its message, under review as one text.

use stencilc_compiler::diagnostic::render;
use stencilc_compiler::source::Source;

/// What a program says.
fn messages(text: &str) -> String {
    let source = Source::new("wrong.stn", text);
    render(&stencilc_compiler::check(&source).diagnostics, &source, false)
}

/// Wrong programs, one a line; `;` ends a statement.
const WRONG: &[&str] = &[
    // Text that is no program.
    "",
    "stencil",
    "stencil s { in a; out b; b = a + }",
    "stencil s { in a; out b; b = (a }",
    "stencil s { in a; out b; b = a * * 2 }",
    "stencil s { in a; out b; b = a[i-1 }",
    "stencil s { in a; out b; let c: real = a; b = c }",
    "stencil s { in a; out b; for n in 1..3 { b = a } }",
    "stencil s { in a; out b; b = a ? 1 : 0 }",
    "stencil s { in a; out b; return a }",
    "# a comment\nstencil s { in a; out b; b = a }",
    "def f(a) = a",
    "stencil s { in float a; out b; b = a }",
    // Operators of other languages.
    "stencil s { in a; out b; b = a ^ 2 }",
    "stencil s { in a; out b; b = if a > 0 and a < 1 { 1 } else { 0 } }",
    "stencil s { in a; out b; b = if a = 0 { 1 } else { 0 } }",
    "stencil s { in a; out b; b = if 0 < a < 1 { 1 } else { 0 } }",
    "stencil s { in a; out b; b = if a /= 0 { 1 } else { 0 } }",
    "stencil s { in a; out b; b = if a > 0 { 1 } }",
    // Names.
    "stencil s { in phi; out res; res = phy }",
    "stencil s { in phi; out res; rez = phi }",
    "stencil s { in phi; out res; res = laplacian(phi) }\nfn laplacian_of(a) = a[i-1] - 2*a + a[i+1]",
    "stencil s { in a; out b; b = c; let c = a }",
    "stencil s { in a, a; out b; b = a }",
    "stencil s { in k; out b; b = k }",
    "stencil s { in sqrt; out b; b = sqrt }",
    "const dx = 2\nstencil s { in a; out b; let dx = a; b = dx }",
    "stencil s { in a; out b; b = i * a }",
    "stencil s { in a; out b; b = a }\nstencil s { in a; out b; b = a }",
    // Outputs.
    "stencil s { in a; out b, c; b = a }",
    "stencil s { in a; out b; b = a; b = 2*a }",
    "stencil s { in a; out b; b = a; a = 1 }",
    "stencil s { in a; out b, c; b = a; c = b[i-1] }",
    "stencil s { in a; out b; b[i+1] = a }",
    "stencil s { in a; out b; b += a }",
    "stencil s { in a }",
    "stencil s { in a; out b on (i, j); b = a }",
    // Kinds.
    "stencil s { in a; out b; b = a > 0 }",
    "stencil s { in a; out b: int; b = a }",
    "stencil s { in a; out b; b = if a { 1 } else { 2 } }",
    "stencil s { in a; out b; b = if a > 0 { 1 } else { a > 1 } }",
    "stencil s { in a; in m: bool; out b; b = m + a }",
    "stencil s { in a; in m: bool; out b; b = -m * a }",
    "stencil s { in a; in m: bool; out b; b = sqrt(m) + a }",
    "stencil s { in a; out b; b = if !a { 1 } else { 2 } }",
    "stencil s { in n: int; out b: int; b = n % n }",
    "stencil s { in n: int; out b: int; b = n % 0 }",
    "stencil s { in n: int; out b: int; b = n + (2147483647 + 1) }",
    "stencil s { in a; out b; b = a + 3000000000 }",
    "stencil s { in a; out b; b = a ** 0.5 }",
    "stencil s { in a; out b; b = exp(a) }",
    // Offsets.
    "stencil s { in a; param n: int; out b; b = a[i+n] }",
    "stencil s { in a; out b; b = a[i-0.5] }",
    "stencil s { in a; out b; b = a[x-1] }",
    "stencil s { in a; out b; b = a[1] }",
    "stencil s { in a; out b; b = a[i-1, i+1] }",
    "stencil s { in a; in h on (i, j); out b; b = a + h[k-1] }",
    "stencil s { in a; in w on (k); out b; b = a + w[i-1] }",
    "stencil s { in a; out b; b = a(i-1) }",
    // Places, types and ranges.
    "stencil s { in a on (i); out b; b = a }",
    "stencil s { in a on (); out b; b = a }",
    "stencil s { in a on cell; out b; b = a }",
    "stencil s { in a: real[3]; out b; b = a }",
    "stencil s { in a: double; out b; b = a }",
    "stencil s { in a = 2..1; out b; b = a }",
    "stencil s { in a; out b = 0..1; b = a }",
    "stencil s { in a; param p: f32; out b; b = a + p }",
    "stencil s { in a; param p = a; out b; b = a + p }",
    // Functions, sums and constants.
    "fn f(a, b) = a + b\nstencil s { in a; out b; b = f(a) }",
    "fn f(a) = g(a)\nfn g(a) = f(a)\nstencil s { in a; out b; b = f(a) }",
    "stencil s { in a; out b; b = min(a) }",
    "const a = b\nconst b = a\nstencil s { in x; out y; y = a * x }",
    "const w = [1, 2, 3]\nstencil s { in a; out b; b = w[3] * a }",
    "const w = [1, 2, 3]\nstencil s { in a; out b; b = w * a }",
    "stencil s { in a; out b; b = sum(n in 3..=1) { a[i+n] } }",
    "stencil s { in a; out b; b = sum(n in 1..3) { a[i+n] } }",
    "stencil s { in a; out b; b = sum(n in 1..=100000) { a[i+n] } }",
    "stencil s { in a; out b; b = sum(n in neighbours) { a[n] } }",
    // What is never used is a warning.
    "const c = 1\nfn f(a) = a\nstencil s { in a, unused; param p: real; out b; let l = a; b = a }",
    // What other versions bring.
    "stencil s { in a; out b; sweep k up { let c = a }; b = c }",
    "stencil s over mesh.cell { in a; out b; b = a }",
    "program p { inout a; a = s(a) }\nstencil s { in a; out b; b = a }",
    // Several at once.
    "stencil s { in a; out b; let x = y + 1; let z = x * 2; b = z + q(a) + a[j+r] }",
];

#[test]
fn every_wrong_program_is_answered() {
    let mut review = String::new();
    for wrong in WRONG {
        let messages = messages(wrong);
        assert!(!messages.is_empty(), "accepted: {wrong}");
        review += &format!("{wrong}\n\n{messages}\n{}\n\n", "=".repeat(60));
    }
    insta::assert_snapshot!(review);
}

#[test]
fn follow_ups_stay_silent() {
    // `x` is wrong, so what is made of it says nothing.
    let text = messages("stencil s { in a; out b; let x = y + 1; let z = x * 2; b = z + x[i-1] }");
    assert_eq!(text.matches("error").count(), 1, "{text}");
}

#[test]
fn monsters_are_answered() {
    let repeated = |head: &str, body: &str, times: usize, tail: &str| format!("{head}{}{tail}", body.repeat(times));
    let (head, tail) = ("stencil s { in a; out b; b = ", "a }");
    let monsters = [
        repeated(head, "(", 50_000, tail),
        repeated(head, "-", 50_000, tail),
        repeated(head, "!", 50_000, tail),
        repeated(head, "a ** ", 50_000, tail),
        repeated(head, "if a > 0 { 1 } else ", 5_000, "{ 2 } }"),
        repeated(head, "a + ", 300_000, tail),
        format!("stencil s {{ in a; out b\n{}b = a }}", "let x = a\n".repeat(10_000)),
        format!("stencil s {{ in a; out b = {} }}", "x".repeat(10_000_000)),
        {
            let chain: String = (0..40).map(|n| format!("fn f{}(a) = f{n}(a) + f{n}(a[i+1])\n", n + 1)).collect();
            format!("fn f0(a) = a\n{chain}stencil s {{ in a; out b; b = f40(a) }}")
        },
        {
            let chain: String = (0..3_000).map(|n| format!("let x{} = x{n} + 1\n", n + 1)).collect();
            format!("stencil s {{ in a; out b; let x0 = a * 2\n{chain}b = x3000 }}")
        },
        "stencil s { in a\0; out b; b = a }".to_owned(),
        "stencil s { in a; out b; b = a /* \u{202E} */ }".to_owned(),
    ];
    for monster in monsters {
        let started = std::time::Instant::now();
        let answer = messages(&monster);
        let seconds = started.elapsed().as_secs_f64();
        let head: String = monster.chars().take(60).collect();
        assert!(answer.contains("error"), "accepted: {head}");
        assert!(answer.len() < 20_000, "{} bytes of messages for: {head}", answer.len());
        assert!(seconds < 20.0, "{seconds} s for: {head}");
    }
}
