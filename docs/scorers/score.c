/* Score rows by a model that `streamcut export m.npz m.json` wrote; docs/model-json.md is the specification.
     cc -O2 -o score score.c -lm && ./score m.json < rows.jsonl       one JSON object a line, as score.js writes them */
#include <math.h>
#include "json.h"

static json model;
static const json *columns, *nulls;
static double *weights, *scores, *powers; /* weights: of feature j and score k, [j * K + k] */
static size_t K, features;
static int strict;

static void add(const json *feature, double x) {
  if (feature && feature->kind == NUMBER && feature->number < (double)features)
    for (size_t k = 0; k < K; k++) scores[k] += weights[(size_t)feature->number * K + k] * x;
}

static int among(const json *list, const char *text) {
  for (size_t i = 0; i < list->count; i++) if (!strcmp(list->items[i].text, text)) return 1;
  return 0;
}

static int is_number(const char *text) {
  const char *at = text + (*text == '-' || *text == '+'), *begin = at;
  while (isdigit((unsigned char)*at)) at++;
  size_t whole = (size_t)(at - begin), part = 0;
  if (whole > 1 && *begin == '0') return 0;
  if (*at == '.') for (at++; isdigit((unsigned char)*at); at++) part++;
  if (!whole && !part) return 0;
  if (*at == 'e' || *at == 'E') {
    at += 1 + (at[1] == '-' || at[1] == '+');
    if (!isdigit((unsigned char)*at)) return 0;
    while (isdigit((unsigned char)*at)) at++;
  }
  return !*at;
}

static int truth(const char *text) {
  static const char *said[] = {"false", "False", "FALSE", "true", "True", "TRUE"};
  for (int i = 0; i < 6; i++) if (!strcmp(text, said[i])) return i / 3;
  return -1;
}

/* A number, NaN where it is missing. */
static double number_of(const json *value, const char *column) {
  if (value->kind == NOTHING) return NAN;
  if (value->kind != NUMBER && value->kind != TRUTH) fail("no number in column ", column);
  return value->number;
}

/* Which word, or how many edges are at most as large; -1: none of them, -2: missing. */
static long code_of(const json *coding, const json *value) {
  const json *edges = get(coding, "edges"), *words = get(coding, "words");
  const char *column = get(coding, "column")->text, *type = get(coding, "type")->text;
  if (edges) {
    double x = number_of(value, column);
    long code = 0;
    for (size_t i = 0; i < edges->count; i++) code += edges->items[i].number <= x;
    return isnan(x) ? -2 : code;
  }
  int numbers = !strcmp(type, "integer") || !strcmp(type, "number"), truths = !strcmp(type, "boolean");
  if (value->kind == NOTHING) return -2;
  if (value->kind != TEXT && value->kind != (numbers ? NUMBER : truths ? TRUTH : TEXT)) fail("no value of its type in column ", column);
  if (value->kind == TEXT && (!*value->text || (strcmp(type, "text") && among(nulls, value->text)))) return -2;
  int counts = value->kind == NUMBER || (value->kind == TEXT && numbers && is_number(value->text));
  double x = value->kind == TEXT && counts ? strtod(value->text, NULL) : value->number;
  int said = value->kind == TRUTH ? (int)x : truths ? truth(value->text) : -1;
  for (size_t i = 0; i < words->count; i++) {
    const char *word = words->items[i].text;
    if (counts ? is_number(word) && strtod(word, NULL) == x : said >= 0 ? truth(word) == said : !strcmp(word, value->text)) return (long)i;
  }
  return -1;
}

static const json *value_of(const json *row, const json *coding) {
  const char *column = get(coding, "column")->text;
  const json *found = get(row, column);
  if (!found) fail("no column ", column);
  return found;
}

static void missing(const json *part) {
  if (strict) fail("no value in column ", get(part, "column")->text);
  add(get(part, "absent"), 1);
}

static void add_part(const json *part, const json *row) {
  const char *kind = get(part, "kind")->text;
  const json *found = get(part, kind[1] == 'r' ? "of" : "features");
  if (kind[0] == 'n') {
    double x = number_of(value_of(row, part), get(part, "column")->text);
    if (isnan(x)) missing(part);
    else add(get(part, "feature"), (x - get(part, "centre")->number) / get(part, "spread")->number);
  } else if (kind[1] == 'a') {
    long code = code_of(part, value_of(row, part));
    if (code == -2) missing(part);
    else if (code >= 0) add(&found->items[code], 1);
  } else {
    long codes[64];
    for (size_t n = 0; n < found->count; n++) codes[n] = code_of(&found->items[n], value_of(row, &found->items[n]));
    const json *all = get(part, "features");
    for (size_t i = 0; i < all->count; i++) {
      size_t same = 0;
      while (same < found->count && all->items[i].items[same].number == (double)codes[same]) same++;
      if (same == found->count) add(&all->items[i].items[same], 1);
    }
  }
}

static void print_json(const json *value) {
  if (value->kind != TEXT) { printf("%.17g", value->number); return; }
  putchar('"');
  for (const char *c = value->text; *c; c++) (unsigned char)*c < 32 ? printf("\\u%04x", *c) : *c == '"' || *c == '\\' ? printf("\\%c", *c) : putchar(*c);
  putchar('"');
}

static void print_list(const char *name, const double *values, size_t n) {
  printf(", \"%s\": [", name);
  for (size_t k = 0; k < n; k++) printf("%s%.17g", k ? ", " : "", values[k]);
  putchar(']');
}

static void print_answer(void) {
  const json *labels = get(&model, "labels"), *link = get(&model, "link");
  size_t best = 0;
  for (size_t k = 1; k < K; k++) if (scores[k] > scores[best]) best = k;
  json answer = {NUMBER, get(&model, "exponential")->number ? exp(scores[0]) : scores[0], NULL, 0, NULL, NULL};
  printf("{\"label\": ");
  print_json(labels->kind == NOTHING ? &answer : &labels->items[K > 1 ? best : scores[0] > 0]);
  print_list("scores", scores, K);
  if (link->kind == NOTHING) { puts(", \"probabilities\": null}"); return; }
  if (get(link, "A")) {
    double logit = get(link, "A")->number * scores[0] + get(link, "B")->number;
    powers[0] = 1 / (1 + exp(-logit));
    powers[1] = 1 / (1 + exp(logit));
    print_list("probabilities", powers, 2);
  } else {
    double most = -INFINITY, sum = 0;
    for (size_t k = 0; k < K; k++) {
      const json *offsets = get(link, "offsets");
      powers[k] = get(link, "odds") ? fmin(scores[k], 0) - log1p(exp(-fabs(scores[k])))
                                    : get(link, "scale")->number * scores[k] + (offsets->count ? offsets->items[k].number : 0);
      most = fmax(most, powers[k]);
    }
    for (size_t k = 0; k < K; k++) sum += powers[k] = exp(powers[k] - most);
    for (size_t k = 0; k < K; k++) powers[k] /= sum;
    print_list("probabilities", powers, K);
  }
  puts("}");
}

static char *whole(FILE *file) {
  size_t size = 0, most = 1 << 16;
  char *text = room(NULL, most);
  for (size_t n; (n = fread(text + size, 1, most - size - 1, file)) > 0;) if ((size += n) + 1 == most) text = room(text, most *= 2);
  text[size] = 0;
  return text;
}

int main(int argc, char **argv) {
  FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
  if (!file) fail("give a model in JSON, and rows on standard input", "");
  const char *at = whole(file);
  model = read_json(&at);
  columns = get(&model, "columns");
  nulls = get(&model, "nulls");
  const json *recipe = get(&model, "recipe"), *intercepts = get(&model, "intercepts"), *used = get(&model, "features");
  if (columns->kind == NOTHING && recipe->kind != NOTHING && strcmp(get(recipe, "form")->text, "numbers")) fail("only streamcut knows how rows become features", "");
  strict = columns->kind == LIST && !strcmp(get(&model, "missing")->text, "error");
  K = intercepts->count;
  features = (size_t)get(&model, "n_features")->number;
  weights = room(NULL, features * K * sizeof(double));
  scores = room(NULL, K * sizeof(double));
  powers = room(NULL, (K + 1) * sizeof(double));
  memset(weights, 0, features * K * sizeof(double));
  for (size_t j = 0; j < used->count; j++)
    for (size_t k = 0; k < K; k++) weights[(size_t)used->items[j].number * K + k] = get(&model, "weights")->items[j].items[k].number;
  for (at = whole(stdin), blanks(&at); *at; blanks(&at)) {
    json row = read_json(&at);
    for (size_t k = 0; k < K; k++) scores[k] = intercepts->items[k].number;
    for (size_t i = 0; columns->kind == NOTHING && i < row.count; i++) {
      json feature = {NUMBER, strtod(row.keys[i], NULL), NULL, 0, NULL, NULL};
      add(&feature, number_of(&row.items[i], row.keys[i]));
    }
    for (size_t i = 0; i < columns->count; i++) add_part(&columns->items[i], &row);
    print_answer();
  }
  return 0;
}
