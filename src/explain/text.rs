//! The answer for people: numbered steps, aligned, the verdict last.

use super::Speaks;
use super::explanation::{Because, Explanation, Step, Topic};
use super::words::list;

/// How wide the column of topics is.
const TOPIC: usize = 12;

/// The answer as lines of text.
pub fn text(explanation: &Explanation) -> String {
    let mut lines =
        vec![format!("{} to {}", explanation.pod, explanation.destination), String::new()];
    let mut number = 0;
    for step in &explanation.steps {
        number += 1;
        lines.extend(of_step(number, step));
    }
    let mut told: Vec<(usize, &Step)> = Vec::new();
    for path in &explanation.paths {
        if path.steps.is_empty() {
            continue;
        }
        let who = list(path.speaks.iter().map(|one| one.as_str())).replace(" and ", " or ");
        let who = if path.speaks.len() == Speaks::ALL.len() { "anything".to_owned() } else { who };
        lines.push(format!("    if it speaks {who}:"));
        for (at, step) in (number + 1..).zip(&path.steps) {
            let before = told.iter().find(|(_, other)| *other == step);
            match (before, step.topic) {
                (Some((before, _)), Topic::Endpoints) => {
                    let says = format!("{}, as in {before} above", step.says);
                    lines.extend(of_step(at, &Step::new(step.topic, says)));
                }
                _ => lines.extend(of_step(at, step)),
            }
        }
        told.extend((number + 1..).zip(&path.steps));
    }
    if !explanation.findings.is_empty() {
        lines.extend([String::new(), "what is wrong with these objects:".to_owned()]);
        for found in &explanation.findings {
            let since = found.since.as_ref().map(|since| format!(" (since {since})"));
            lines.push(format!("    {}{}", found.finding, since.unwrap_or_default()));
        }
    }
    lines.extend([String::new(), explanation.verdict.clone(), String::new()]);
    // What a user wrote may hold a line break; a line is one all the same.
    lines.iter().map(|line| line.replace(char::is_control, " ")).collect::<Vec<_>>().join("\n")
}

fn of_step(number: usize, step: &Step) -> Vec<String> {
    let mut lines = vec![format!("{number:>3} {:<TOPIC$}{}", step.topic.as_str(), step.says)];
    let indent = " ".repeat(4 + TOPIC);
    lines.extend(step.because.iter().map(|because| format!("{indent}- {}", reason(because))));
    lines.extend(step.notes.iter().map(|note| format!("{indent}  {note}")));
    lines
}

fn reason(because: &Because) -> String {
    let Because { object, field, value, rule } = because;
    let mut what = object.clone();
    if !field.is_empty() {
        let between = if object == "option" { " " } else { ", " };
        what = format!("{what}{between}{field}");
    }
    if !value.is_empty() {
        what = format!("{what}: {value}");
    }
    format!("{what}; {rule}")
}
