//! Bar charts of counts, drawn with letters.

use crate::terminal;

/// Lines that the highest bar takes.
const HEIGHT: usize = 6;

/// Bars by their height in eighths of a letter.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Bars between two numbers below them.
const STEP: usize = 10;

/// A chart: a title, a bar for each count with the scale to their left, and the bars' numbers below. What is not 0 can be
/// seen. The lines are of one width.
pub fn chart(title: &str, counts: &[usize]) -> Vec<String> {
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let scale = most.to_string();
    let bar = |count: usize, line: usize| {
        let eighths = (count as u128 * (8 * HEIGHT) as u128).div_ceil(most as u128) as usize;
        let own = eighths.saturating_sub(8 * line).min(8);
        EIGHTHS.get(own).copied().unwrap_or(' ')
    };
    let margin = |text: &str, edge: char| format!("{}{text} {edge}", terminal::blanks(text, scale.len()));
    let mut lines = vec![title.to_owned()];
    for line in (0..HEIGHT).rev() {
        let bars: String = counts.iter().map(|&count| bar(count, line)).collect();
        lines.push(margin(if line == HEIGHT - 1 { &scale } else { "" }, '│') + &bars);
    }
    lines.push(margin("0", '└') + &"─".repeat(counts.len()));
    let mut numbers = margin("", ' ');
    let first = numbers.chars().count();
    for number in (1..=counts.len()).filter(|&number| number == 1 || number % STEP == 0) {
        // A number ends below its bar.
        let text = number.to_string();
        let before = (first + number).saturating_sub(numbers.chars().count() + text.len());
        numbers.push_str(&format!("{}{text}", " ".repeat(before)));
    }
    lines.push(numbers);
    let width = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    lines.iter().map(|line| format!("{line}{}", terminal::blanks(line, width))).collect()
}

/// Charts side by side, two in a row.
pub fn side_by_side(charts: &[Vec<String>]) -> String {
    let mut text = String::new();
    for (row, pair) in charts.chunks(2).enumerate() {
        if row > 0 {
            text.push('\n');
        }
        for line in 0..pair.iter().map(Vec::len).max().unwrap_or(0) {
            let parts: Vec<&str> = pair.iter().filter_map(|chart| chart.get(line)).map(String::as_str).collect();
            text.push_str(parts.join("    ").trim_end());
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_by_hand() {
        let counts = [48, 24, 9, 1, 0, 0, 0, 0, 0, 8, 8];
        assert_eq!(
            side_by_side(&[chart("one", &counts), chart("two", &[3])]),
            "one                two\n\
             48 │█              3 │█\n   \
                │█                │█\n   \
                │█                │█\n   \
                │██               │█\n   \
                │██▁              │█\n   \
                │███▁     ██      │█\n \
              0 └───────────    0 └─\n    \
                 1       10        1\n"
        );
    }

    #[test]
    fn no_count_is_too_large() {
        let lines = chart("", &[usize::MAX, 0, 1]);
        assert!(lines[1].ends_with("│█  ") && lines[HEIGHT].ends_with("│█ ▁"), "{lines:?}");
        assert_eq!(chart("none", &[]).len(), HEIGHT + 3);
    }
}
