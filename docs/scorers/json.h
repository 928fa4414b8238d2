/* JSON as a tree, read from text in memory: enough for models and rows. What is read is kept until the program ends. */
#ifndef JSON_H
#define JSON_H
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { NOTHING, TRUTH, NUMBER, TEXT, LIST, RECORD };
typedef struct json {
  enum kind kind;
  double number; /* of a number; 1 or 0 of a truth value */
  char *text;
  size_t count; /* of a list or a record */
  struct json *items;
  char **keys;
} json;

static void fail(const char *what, const char *name) {
  fprintf(stderr, "score: %s%s\n", what, name);
  exit(1);
}

static void *room(void *old, size_t size) {
  void *found = realloc(old, size ? size : 1);
  if (!found) fail("out of memory", "");
  return found;
}

static void blanks(const char **at) {
  while (isspace((unsigned char)**at)) ++*at;
}

static unsigned hex(const char **at) {
  unsigned value = 0;
  for (int i = 0; i < 4; i++, ++*at) {
    if (!isxdigit((unsigned char)**at)) fail("JSON: four hexadecimal digits are expected", "");
    value = value * 16 + (unsigned)(isdigit((unsigned char)**at) ? **at - '0' : tolower(**at) - 'a' + 10);
  }
  return value;
}

static char *utf8(char *out, unsigned c) {
  if (c == 0) fail("JSON: a text holds the character 0", "");
  if (c < 0x80) *out++ = (char)c;
  else if (c < 0x800) *out++ = (char)(0xC0 | c >> 6);
  else if (c < 0x10000) { *out++ = (char)(0xE0 | c >> 12); *out++ = (char)(0x80 | (c >> 6 & 63)); }
  else { *out++ = (char)(0xF0 | c >> 18); *out++ = (char)(0x80 | (c >> 12 & 63)); *out++ = (char)(0x80 | (c >> 6 & 63)); }
  if (c >= 0x80) *out++ = (char)(0x80 | (c & 63));
  return out;
}

static char *read_text(const char **at) {
  const char *end = *at + 1;
  while (*end && *end != '"') end += 1 + (*end == '\\' && end[1]);
  char *text = room(NULL, (size_t)(end - *at)), *out = text; /* escapes only get shorter */
  for (++*at; **at != '"';) {
    if (**at == 0) fail("JSON: a text does not end", "");
    if (**at != '\\') { *out++ = *(*at)++; continue; }
    char c = *++*at;
    ++*at;
    if (c == 'u') {
      unsigned code = hex(at);
      if (code >= 0xD800 && code < 0xDC00 && (*at)[0] == '\\' && (*at)[1] == 'u') { *at += 2; code = 0x10000 + ((code - 0xD800) << 10) + hex(at) - 0xDC00; }
      out = utf8(out, code);
    } else *out++ = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c == 'b' ? '\b' : c == 'f' ? '\f' : c;
  }
  *out = 0;
  ++*at;
  return room(text, (size_t)(out - text) + 1);
}

static json read_json(const char **at) {
  json found = {NOTHING, 0, NULL, 0, NULL, NULL};
  blanks(at);
  char first = **at;
  if (first == '"') { found.kind = TEXT; found.text = read_text(at); return found; }
  if (first == '[' || first == '{') {
    char end = first == '[' ? ']' : '}';
    size_t most = 0;
    found.kind = first == '[' ? LIST : RECORD;
    for (++*at, blanks(at); **at != end; blanks(at)) {
      if (found.count == most) {
        most = 2 * most + 8;
        found.items = room(found.items, most * sizeof(json));
        found.keys = room(found.keys, most * sizeof(char *));
      }
      if (found.kind == RECORD) {
        found.keys[found.count] = read_text(at);
        blanks(at);
        if (*(*at)++ != ':') fail("JSON: a colon is expected", "");
      }
      found.items[found.count++] = read_json(at);
      blanks(at);
      if (**at == ',') ++*at;
      else if (**at != end) fail("JSON: a comma or an end is expected", "");
    }
    ++*at;
    return found;
  }
  if (!strncmp(*at, "null", 4)) { *at += 4; return found; }
  if (!strncmp(*at, "true", 4)) { *at += 4; found.kind = TRUTH; found.number = 1; return found; }
  if (!strncmp(*at, "false", 5)) { *at += 5; found.kind = TRUTH; return found; }
  char *stop;
  found.kind = NUMBER;
  found.number = strtod(*at, &stop);
  if (stop == *at) fail("JSON: a value is expected at ", *at);
  *at = stop;
  return found;
}

/* The value of a key, NULL where a record has none. */
static const json *get(const json *record, const char *key) {
  for (size_t i = 0; i < record->count; i++)
    if (record->keys && !strcmp(record->keys[i], key)) return &record->items[i];
  return NULL;
}
#endif
