#pragma once
/*
 * What linters, type checkers and compilers report, read as a stream with bounded memory, whichever
 * of these it is, and mixed: "file:line:column: severity: text [rule]" as gcc, clang, mypy, ruff,
 * flake8, go vet and golangci-lint write it; tsc's "file(line,column): error TS1: text"; eslint's
 * blocks and its JSON; the JSON messages of cargo. No I/O.
 */
#include <stdint.h>

#include "base/buf.h"

enum { FINDINGS_MAX = 500, FINDING_TEXT_MAX = 1024 };

struct finding {
	struct str file; /* relative to root, or as the tool says it; may be empty */
	unsigned line, column; /* 0: unknown */
	bool warning; /* else an error, as where the tool makes no difference */
	struct str rule; /* may be empty */
	struct str text; /* one line */
};

struct findings {
	uint64_t errors, warnings; /* of all */
	struct finding *p; /* the first of them */
	size_t n;
	uint64_t lost; /* lines that were cut or malformed, and pieces that never came */
	struct str missing; /* a program that the command did not find; empty: none */
};

enum findings_verdict {
	FINDINGS_CLEAN, /* it ended well and found nothing */
	FINDINGS_SOME,
	FINDINGS_UNPARSED, /* it failed, and none of its output was understood */
};
enum findings_verdict findings_verdict(const struct findings *f, int exit_code);

struct findings_parser;

/* root: the project's folder as the program sees it; copied. */
struct findings_parser *findings_parser_new(struct str root, struct err *e) MUST_USE;
void findings_parser_free(struct findings_parser *p); /* NULL-safe */
AUTO_DEFINE(findings_parser_free, struct findings_parser)

void findings_parser_feed(struct findings_parser *p, unsigned stream, struct str bytes);
void findings_parser_lost(struct findings_parser *p);
/* Once. Borrowed until findings_parser_free(). */
const struct findings *findings_parser_end(struct findings_parser *p);
