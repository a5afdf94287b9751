//! What a user reads when something is wrong: each wrong program with its message, under review as one text.

use stencilc_compiler::diagnostic::render;
use stencilc_compiler::source::Source;

/// What a program says.
fn messages(text: &str) -> String {
    let source = Source::new("wrong.stn", text);
    render(&stencilc_compiler::check(&source).diagnostics, &source, false)
}

/// What parts the programs of a file in `tests/wrong`.
const LINE: &str = "\n----\n";

#[test]
fn every_wrong_program_is_answered() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wrong");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let area = path.file_stem().unwrap().to_string_lossy().into_owned();
        let mut review = String::new();
        for wrong in std::fs::read_to_string(&path).unwrap().trim_end().split(LINE) {
            let messages = messages(wrong);
            assert!(!messages.is_empty(), "accepted: {wrong}");
            review += &format!("{wrong}\n\n{messages}\n{}\n\n", "=".repeat(60));
            count += 1;
        }
        insta::assert_snapshot!(format!("wrong-{area}"), review);
    }
    assert!(count > 400, "only {count} programs were found");
}

#[test]
fn an_empty_file_is_answered() {
    for empty in ["", "\n\n\n", "// nothing\n", "\u{FEFF}"] {
        assert!(messages(empty).contains("this file has no stencil"), "{}", messages(empty));
    }
}

#[test]
fn what_is_right_brings_no_message() {
    let harmless = [
        // Guards that guard, and conditions that are decided in some of the places where they are written out.
        "b = if k > 0 { a[k-1] } else { a }",
        "b = if k != 0 { a[k-1] } else { a }",
        "b = if k > 0 && a[k-1] > 0 { a } else { 0 }",
        "b = if k == 0 || k == nk - 1 { a } else { a[k-1] + a[k+1] }",
        "b = if !(k < 2) && nk > k + 2 { a[k-2] + a[k+2] } else { a }",
        "let low = k < 1; b = if low { a } else { a[k-1] }",
        "b = sum(n in -1..=1) { if k + n >= 0 && k + n < nk { a[k+n] } else { 0 } }",
        "let g = if k >= 0 { a } else { 0 }; b = if k > 0 { g[k-1] } else { a }",
        "let g = if k >= 0 { a } else { 0 }; b = g[k-1]",
        "param n: int = 3; b = if k < n { a } else { a[k-1] }",
        "param n: int = 3; b = if k > 0 && k > n { a[k-1] } else { a }",
        "in h on (i, j, k+1); b = if k < nk - 1 { h[k+2] - h[k+1] } else { h[k+1] - h + a }",
        "const deep = false; b = if deep { a[k-2] } else { a }",
        "b = a[k-1] + a[k+1]",
        // Numbers at the ends of what there is.
        "b = a + -2147483648 + 2147483647 + 1e308 + 5e-324",
        // A comment that is no lost division.
        "in c // 2 times a\n b = a + c // 0.5 to 1\n",
        "b = a // half",
        // What is not used by anybody may still be right.
        "b = a[i][j]",
        // What has no place stays as it is when it is shifted by another name.
        "const w = [0.5, 0.25]; let v = w; b = a * dot(v[k+1], v[i]) + v[j-1][1]",
        "const w = [0.5, 0.25]; fn f(v) = dot(v[i], v[i-1, k+1]); b = a * f(w)",
        // A stencil is no value: its name hides nothing.
        "in s; b = a + s[i-1]",
        // Conditions on real numbers that are the same in every precision.
        "const n = if 0.1 != 1.0 { 1 } else { 2 }; const m: int = if 0.1 + 0.2 > 0.25 { n } else { 0 }; b = a[i+n-m]**m",
        "const steep = 1.5; const wide = steep * 2 > 2.5; const n = 2 * (if wide { 1 } else { 2 }); b = a[i-n]",
    ];
    for body in harmless {
        let answer = messages(&format!("stencil s {{ in a; out b; {body} \n }}"));
        assert_eq!(answer, "", "{body}");
    }
}

/// Blocks of the reference that are whole files, as most are, and no parts of one or calls of the command line.
#[test]
fn the_examples_of_the_reference_are_right() {
    let text = include_str!("../docs/language.md");
    // Every other piece stands between the marks of a block.
    let blocks = text.split("\n```").skip(1).step_by(2).filter_map(|block| block.strip_prefix('\n'));
    // What imports others is looked at with them (tests/cli/import.rs).
    let items = ["stencil ", "program ", "mesh ", "fn ", "const ", "param ", "///"];
    let mut count = 0;
    for block in blocks.filter(|block| items.iter().any(|item| block.starts_with(item))) {
        let answer = messages(block);
        assert!(!answer.contains("error"), "{block}\n\n{answer}");
        count += 1;
    }
    assert!(count >= 12, "only {count} examples were found");
}

#[test]
fn guards_are_followed_through_names() {
    for (guard, better) in [
        ("let inside = k >= 0; b = if inside { a[k-1] } else { a }", "k >= 1"),
        ("let low = k < 0; let inside = !low; b = if inside { a[k-1] } else { a }", "k >= 1"),
        ("let inside = k >= 0 && k < nk; b = if inside { a[k+1] } else { a }", "k < nk - 1"),
    ] {
        let answer = messages(&format!("stencil s {{ in a; out b; {guard} }}"));
        assert!(answer.contains("lets `k = ") && answer.contains(&format!("guard it with `{better}`")), "{answer}");
    }
    // A name that is read elsewhere moves its guard along.
    let moved = "let here = k > 0; b = if here[k+1] { a[k-1] } else { a }";
    let answer = messages(&format!("stencil s {{ in a; out b; {moved} }}"));
    assert!(answer.contains("lets `k = 0` pass"), "{answer}");
    let answer = messages("stencil s { in a; out b; let inside = k > 0; b = if inside { a[k-1] } else { a } }");
    assert_eq!(answer, "");
}

#[test]
fn follow_ups_stay_silent() {
    // `x` is wrong, so what is made of it says nothing.
    let text = messages("stencil s { in a; out b; let x = y + 1; let z = x * 2; b = z + x[i-1] }");
    assert_eq!(text.matches("error").count(), 1, "{text}");
    // Neither does what is made of a name that is assigned and not declared, nor the output that was meant.
    for body in ["tmp = a; b = tmp + tmp[i-1]", "tmp = a; tmp = 2*a; b = tmp", "b = a; out res; rse = a"] {
        let text = messages(&format!("stencil s {{ in a; out b; {body} }}"));
        assert_eq!(text.matches("error").count(), 1, "{text}");
    }
}

#[test]
fn what_a_sweep_reads_above_its_definition_is_used() {
    let sweep = |lines: &str| messages(&format!("stencil s {{ in a; out b; sweep k up {{ {lines} }} }}"));
    assert_eq!(sweep("let x = if k > 0 { y[k-1] } else { a }; let y = x + a; b = x"), "");
    assert_eq!(sweep("b = if k > 0 { y[k-1] } else { a }; let y = 2*a"), "");
    // What is made of itself alone nobody uses.
    let unused = sweep("let y = if k > 0 { y[k-1] } else { a }; b = a");
    assert!(unused.contains("the value `y` is never used"), "{unused}");
}

#[test]
fn what_may_follow_from_an_error_is_told_after_it() {
    let program = "program p { inout u; in c; param n: int = 3; repeat n { u = step(u, c) } }\n";
    let broken = messages(&format!("{program}stencil step {{ in u, c; out v; v = u + missing }}"));
    assert!(broken.contains("missing") && !broken.contains("never used"), "{broken}");
    let passed = messages(
        "stencil s { in a, c; out b; b = a * foo }\nprogram p { inout a; in c; let y = s(a, c); let z = y; a = z }",
    );
    assert!(passed.contains("unknown name `foo`") && passed.matches("error").count() <= 1, "{passed}");
    assert!(!passed.contains("a field is given"), "{passed}");
    let elsewhere = messages(
        "const g = 9.8\nfn f(a, b) = a\nstencil s { in a, c; out b; let d = a; b = f(a, a) }\nstencil t { in a; out b; b = g + x }",
    );
    assert!(elsewhere.contains("unknown name `x`") && !elsewhere.contains("never used"), "{elsewhere}");
    let mended = messages(
        "const g = 9.8\nfn f(a, b) = a\nstencil s { in a, c; out b; let d = a; b = f(a, a) }\nstencil t { in a; out b; b = g + a }",
    );
    assert_eq!(mended.matches("never used").count(), 3, "{mended}");
}

#[test]
fn numbers_have_no_neighbours() {
    let number = "is a number: it is the same everywhere";
    for text in [
        "stencil s { in a; param dx; out b; b = a + dx[i+1] }",
        "param dx = 1.0\nstencil s { in a; out b; b = a + dx[k-1] }",
        "const dx = 0.5\nstencil s { in a; out b; b = a + dx[j+1] }",
        "stencil s { in a; const dx = 0.5; out b; b = a + dx[j+1] }",
        "stencil s { in a; param dx; fn f(a) = a * dx[i+1]; out b; b = f(a) }",
        "program p { inout u; param dx; u = s(u, dx[i+1]) }\nstencil s { in a; param h; out b; b = a * h }",
        "mesh m { set cell; levels k }\nstencil s over m.cell { in a; param dx; out b; b = a + dx[k-1] }",
        "mesh m { set cell, edge; map edge.cells -> cell[2] }\nstencil s over m.edge { in a on cell; param dx; out b; b = a[cells.0] + dx[cells.1] }",
        "stencil s { in a; param dx; out b; b = a + (dx)[i+1] }",
        "stencil s { in a; param dx; out b; b = a + ((2*dx))[k-1] }",
        "stencil s { in a; const w = [1, 2]; out b; b = a + (w[1])[i+1] }",
        "stencil s { in a; out b; b = a + (2)[j+1] }",
        "stencil s { in a; param dx; out b; b = a + (sqrt(dx) - nk)[k+1] }",
    ] {
        assert!(messages(text).contains(number), "{text}\n{}", messages(text));
    }
    for moved in ["k[i+1]", "(k)[i+1, k-1]", "(2*k - nk)[j-1]", "(if_k)[i+1]"] {
        let text =
            format!("stencil s {{ in a; in if_k on (k); out b; b = a + if {moved} > 1 {{ 1 }} else {{ 0 }} * if_k }}");
        let said = messages(&text);
        assert!(
            said.contains("is the same in all columns") || said.contains("has no horizontal axes"),
            "{moved}\n{said}"
        );
    }
    // By another name it may be shifted.
    let passed = "fn diff(a) = a[i+1] - a[i-1]\nstencil s { in a; param dx; out b; b = diff(a) * diff(dx) }";
    assert_eq!(messages(passed), "");
    let passed =
        "fn diff(a) = (2*a)[i+1] - (a)[i-1]\nstencil s { in a; param dx; out b; b = diff(a) * diff(dx) + k[k+1] }";
    assert_eq!(messages(passed), "");
}

#[test]
fn a_number_of_a_program_is_passed_to_parameters() {
    let text = "mesh m { set cell }
program p over m {
    inout q on cell
    out total: real on ()
    total = add(q)
    q = scale(q, total)
}
stencil add over m.cell { in q; reduce total: sum; total += q }
stencil scale over m.cell { in q; in t on (); out next; next = q * t }
";
    let said = messages(text);
    assert!(said.contains("`t` of `scale` is a field, and `total` a number") && said.contains("`param t`"), "{said}");
    let mended = messages(&text.replace("in t on ()", "param t"));
    assert_eq!(mended, "");
}

#[test]
fn functions_that_nobody_calls_may_take_anything() {
    let text = messages(
        "fn f(c, x) = if c { x } else { x[i-1] }\nfn g(n, x) = x[i+n]\nfn h(w, x) = w[0]*x + w[7]\n\
         fn l(x) = dot(x, [1,2,3,4])\nfn m(n) = 7 % n + 2**n\nstencil s { in a; out b; b = a }",
    );
    assert!(!text.contains("error") && text.matches("is never used").count() == 5, "{text}");
}

#[test]
fn single_precision_loses_what_it_cannot_hold() {
    use stencilc_compiler::analysis::numbers::numbers;
    use stencilc_compiler::ir::Precision;
    let source = Source::new("s.stn", "stencil s { in a; out b; b = a * 1e300 + 1e-300 + 1e30 * 1e30 }");
    let stencil = &stencilc_compiler::check(&source).stencils[0];
    let told = numbers(stencil, Precision::F32);
    let told: Vec<(&str, &str)> =
        told.iter().map(|found| (source.slice(found.label.span), found.message.as_str())).collect();
    assert_eq!(
        told,
        [
            ("1e300", "this number is too large for single precision"),
            ("1e-300", "this number is too small for single precision"),
            ("1e30 * 1e30", "this constant is infinite"),
        ]
    );
    assert_eq!(numbers(stencil, Precision::F64), []);
}

#[test]
fn limits_are_told() {
    let prints = |count: usize| messages(&format!("stencil s {{ in a; out b; b = a\n{}}}", "print(a)\n".repeat(count)));
    assert_eq!(prints(100), "");
    assert!(prints(101).contains("a stencil has at most 100 prints"));

    let tests = |count: usize| {
        let test = |number| format!("test \"{number}\" {{ s {{ a = {number} }}; expect b == {number} }}\n");
        messages(&format!("stencil s {{ in a; out b; b = a }}\n{}", (0..count).map(test).collect::<String>()))
    };
    assert_eq!(tests(1_000), "");
    assert!(tests(1_001).contains("a file has at most 1000 tests"));

    let wrong = |count: usize| messages(&format!("stencil s {{ in a; out b; b = a{} }}", " + q".repeat(count)));
    assert!(wrong(100).contains("70 more like these are not shown"));
    assert!(wrong(5_000).contains("many more like these are not shown"));
}

#[test]
fn no_offset_goes_further_than_it_may() {
    let far = |by: &str| {
        [
            "stencil s { in a; out b; b = a[AT] }",
            "mesh m { set cell; levels k }\nstencil s over m.cell { in a; out b; b = a[AT] }",
        ]
        .map(|text| messages(&text.replace("AT", by)))
    };
    for by in ["k+-2147483648", "k+2147483647", "k-1000001", "k+-2147483648-1", "k-999999-2"] {
        assert!(far(by).iter().all(|told| told.contains("an offset is at most 1000000 cells")), "{by}: {:?}", far(by));
    }
    assert_eq!(far("k-1000000"), ["", ""]);
}

#[test]
fn what_is_left_unread_is_told() {
    let unused = |count: usize| {
        let long = |number| format!("fn f{number}(a) = sum(n in 1..=4000) {{ a[i+n] }}\n");
        messages(&format!("{}stencil s {{ in a; out b; b = a }}\n", (0..count).map(long).collect::<String>()))
    };
    assert!(!unused(5).contains("not looked at"));
    assert!(unused(100).contains("from here on, what nobody uses is not looked at"));
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
        repeated(head, "a + ", 120_000, tail),
        repeated(head, "q+", 250_000, tail),
        repeated(head, "(a)+", 120_000, tail),
        repeated("stencil s { in a; out b; b = min(", "a,", 250_000, "a) }"),
        repeated("stencil s { in a; out b\n", "b=a\n", 120_000, "}"),
        repeated("stencil s { in a; out b; b = a\n", "print(a)\n", 50_000, "}"),
        (0..10_000).fold("stencil s { in a; out b; b = a }\n".to_owned(), |text, number| {
            format!("{text}test \"{number}\" {{ s {{ a = 1 }}; expect b == 1 }}\n")
        }),
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
        {
            let chain: String = (0..600).map(|n| format!("let x{} = x{n} + x{n}[i+1] * x{n}[j-1]\n", n + 1)).collect();
            format!("stencil s {{ in a; out b; let x0 = a * 2\n{chain}b = c }}")
        },
        {
            let chain: String = (0..60).map(|n| format!("fn f{}(a) = f{n}(a) + f{n}(a[i+1])\n", n + 1)).collect();
            format!("fn f0(a) = a\n{chain}stencil s {{ in a; out b; b = q }}")
        },
        repeated("stencil s { in a; out b\n", "b = c + a[i+q]\n", 20_000, "}"),
        repeated("stencil s { in a; out b\n", "let x = y\n", 30_000, "b = a }"),
        repeated(head, "[", 50_000, tail),
        repeated(head, "{", 50_000, tail),
        repeated(head, "if a > 0 { ", 50_000, tail),
        repeated(head, "[a, ", 200, &format!("a{} }}", "]".repeat(200))),
        repeated(head, "sqrt(", 200, &format!("q{} }}", ")".repeat(200))),
        repeated("", "fn f(a) = a + true\n", 20_000, ""),
        repeated("", "\n", 1_000_000, ""),
        repeated("stencil s { in a; out b; b = ", "x", 1_000_000, " }"),
        repeated("//", "x", 1_000_000, "\nstencil s"),
        repeated("stencil s { in a; out b; b = a ", "? ", 400_000, "}"),
        repeated(head, "1", 500_000, " + a }"),
        "stencil s { in a; out b; b = sum(n in 1..=1000000000) { a } }".to_owned(),
        "stencil s { in a; out b; b = sum(n in 1..=100, m in 1..=100, l in 1..=2147483647) { a } }".to_owned(),
        "stencil s { in a; out b; b = a[i+2147483647] }".to_owned(),
        "stencil s { in a; out b; b = a[i+9223372036854775807] }".to_owned(),
        "stencil s { in a; out b; b = a\u{202E} }".to_owned(),
        "stencil s { in a\u{200B}; out b; b = a }".to_owned(),
        "stencil s { in a; out b; b = a\u{FFFD} }".to_owned(),
        "stencil s {\r\n in a\r\n out b\r\n b = c\r\n}\r\n".to_owned(),
        "\u{FEFF}stencil s { in a; out b; b = c }".to_owned(),
        "stencil s { in a\0; out b; b = a }".to_owned(),
        "stencil s { in a; out b; b = a /* \u{202E} */ }".to_owned(),
    ];
    for monster in monsters {
        let answer = messages(&monster);
        let head: String = monster.chars().take(60).collect();
        assert!(answer.contains("error"), "accepted: {head}");
        assert!(answer.len() < 20_000, "{} bytes of messages for: {head}", answer.len());
    }
}
