// Score rows by a model that `streamcut export m.npz m.json` wrote; docs/model-json.md is the specification.
//   node score.js m.json < rows.jsonl        one JSON object a line: {"label": …, "scores": […], "probabilities": […] or null}
"use strict";
const fs = require("fs");

const NUMBER = /^[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$/;
const BOOLEAN = new Map(["true", "false"].flatMap((b) => [b, b[0].toUpperCase() + b.slice(1), b.toUpperCase()].map((w) => [w, b])));
const fail = (what) => { throw new Error(what); };

// A number, NaN where it is missing.
function numberOf(value, column) {
  if (value === null) return NaN;
  if (typeof value === "boolean") return value ? 1 : 0;
  return typeof value === "number" && isFinite(value) ? value : fail(`column ${column}: ${value} is no number`);
}

// Which word, or how many edges are at most as large; −1: none of them, null: missing.
function codeOf(coding, value) {
  if (coding.edges) {
    const x = numberOf(value, coding.column);
    return isNaN(x) ? null : coding.edges.filter((edge) => edge <= x).length;
  }
  const numbers = coding.type === "integer" || coding.type === "number";
  const own = typeof value === "string" || (numbers ? typeof value === "number" : coding.type === "boolean" && typeof value === "boolean");
  if (value !== null && !own) fail(`column ${coding.column}: ${value} is no ${coding.type}`);
  if (value === null || value === "" || (coding.type !== "text" && NULLS.has(value))) return null;
  const key = (word) => (numbers && NUMBER.test(word) ? Number(word) : coding.type === "boolean" ? BOOLEAN.get(word) || word : word);
  coding.codes = coding.codes || new Map(coding.words.map((word, code) => [key(word), code]));
  return coding.codes.get(key(String(value))) ?? -1;
}

let NULLS;
function scorer(model) {
  if (model.columns === null && model.recipe !== null && model.recipe.form !== "numbers") fail("only streamcut knows how rows become features");
  NULLS = new Set(model.nulls);
  const weights = new Map(model.features.map((feature, j) => [feature, model.weights[j]]));
  return (row) => {
    const scores = [...model.intercepts];
    const add = (feature, x) => (weights.get(feature) || []).forEach((w, k) => { scores[k] += w * x; });
    const value = (column) => (Object.hasOwn(row, column) ? row[column] : fail(`no column ${column}`));
    const missing = (column, feature) => (model.missing === "error" ? fail(`column ${column}: no value`) : add(feature, 1));
    if (model.columns === null) for (const feature in row) add(Number(feature), row[feature]);
    for (const part of model.columns || []) {
      if (part.kind === "number") {
        const x = numberOf(value(part.column), part.column);
        isNaN(x) ? missing(part.column, part.absent) : add(part.feature, (x - part.centre) / part.spread);
      } else if (part.kind === "category") {
        const code = codeOf(part, value(part.column));
        code === null ? missing(part.column, part.absent) : add(part.features[code], 1);
      } else {
        const codes = part.of.map((coding) => codeOf(coding, value(coding.column)));
        part.index = part.index || new Map(part.features.map((each) => [each.slice(0, -1).join(), each[each.length - 1]]));
        if (!codes.includes(null)) add(part.index.get(codes.join()), 1);
      }
    }
    return answer(model, scores);
  };
}

function answer(model, scores) {
  const { labels, link } = model, sigmoid = (s) => 1 / (1 + Math.exp(-s));
  const best = scores.length > 1 ? scores.indexOf(Math.max(...scores)) : scores[0] > 0 ? 1 : 0;
  let probabilities = null;
  if (link !== null && "A" in link) probabilities = [sigmoid(link.A * scores[0] + link.B), sigmoid(-link.A * scores[0] - link.B)];
  else if (link !== null) {
    const logs = scores.map((s, k) => (link.odds ? Math.min(s, 0) - Math.log1p(Math.exp(-Math.abs(s))) : link.scale * s + (link.offsets[k] || 0)));
    const powers = logs.map((x) => Math.exp(x - Math.max(...logs))), sum = powers.reduce((a, b) => a + b);
    probabilities = powers.map((p) => p / sum);
  }
  return { label: labels === null ? (model.exponential ? Math.exp(scores[0]) : scores[0]) : labels[best], scores, probabilities };
}

const score = scorer(JSON.parse(fs.readFileSync(process.argv[2], "utf8")));
for (const line of fs.readFileSync(0, "utf8").split("\n")) if (line.trim()) console.log(JSON.stringify(score(JSON.parse(line))));
