#pragma once
/*
 * Marks: what stands for the secrets in a file that a conversation is shown. A secret of several
 * lines has a mark for each line, so that lines stay lines.
 *
 *	bytes → marks_find() → marks_show() → the model edits → marks_put_back() → bytes
 *
 * The tag of a mark is random, and kept with what the conversation knows of the file. It depends
 * on the place alone: were it derived from the value, a guess written beside the secret would get
 * the same tag. Where the file is changed by these tools, a mark that was put back keeps its tag. A
 * file that was changed by others has new ones.
 *
 * A redactor may be NULL: then there are no secrets. All may be called on another thread.
 */
#include "base/buf.h"
#include "coding/text.h"
#include "guard/redact/redact.h"

struct mark {
	size_t at, n; /* of the bytes */
	char kind[REDACT_KIND_MAX + 1], tag[REDACT_TAG + 1];
};

struct marks {
	struct mark *p; /* in order of `at`; owned */
	size_t n;
	size_t *refs; /* of p; NULL: one */
};
void marks_fini(struct marks *m);
/* The same, for marks_fini(). On the thread of all that share them. */
int marks_share(struct marks *m, struct marks *ret, struct err *e) MUST_USE;

/* Those of a content. Where `old` (may be NULL) are those of the same content, tags stay. ret is
 * written only on success. */
int marks_find(struct marks *ret, struct redactor *r, struct str bytes, const struct marks *old,
	       struct err *e) MUST_USE;

/* Appends bytes with each mark in the place of what it stands for. spans get where each is in *to;
 * room for m->n. */
int marks_show(const struct marks *m, struct str bytes, struct buf *to, struct text_span *spans,
	       struct err *e) MUST_USE;

/* What is written. */
struct marks_text {
	const struct marks *marks; /* of `bytes` */
	struct str bytes; /* the file as it is */
	struct str text; /* that is to be written, with marks */
	const char *argument; /* that it came by, for messages */
};
/* Appends text with the original bytes in the place of marks, whose new places ret gets. Text that
 * only looks like a mark stays, if it is in the file already. ERR_INVALID: another mark, text that
 * looks like one where a mark is gone, or a secret would not be recognised in its new place. */
int marks_put_back(const struct marks_text *t, struct redactor *r, struct buf *to,
		   struct marks *ret, struct err *e) MUST_USE;
/* Whether all marks in a text that is searched for are of the file, or literally in it. */
int marks_check(const struct marks_text *t, struct err *e) MUST_USE;

/* Appends a part of a text whose file is not known or not kept, with marks that can't be put back,
 * one for each line. */
int marks_say(struct redactor *r, const struct redact_part *part, struct buf *to,
	      struct err *e) MUST_USE;

/* ---- what is searched ---------------------------------------------------------------------- */

/* Whether there is a secret in a content: 1 or 0. */
int marks_any(struct redactor *r, struct str bytes, struct err *e) MUST_USE;

/* A text to be searched by a program of the sandbox: each line of a secret becomes a hole of
 * HOLE_BYTES bytes, which are no UTF-8, so that no pattern matches across one by chance. */
enum { HOLE_BYTES = 3, HOLE_KINDS = 49 };
struct holes { /* the kinds of those of a file; zeroed at first */
	char kinds[HOLE_KINDS][REDACT_KIND_MAX + 1];
	size_t n;
};
/* Appends a part of a text with its holes. */
int holes_make(struct holes *h, struct redactor *r, const struct redact_part *part, struct buf *to,
	       struct err *e) MUST_USE;
/* The kind of the hole with which a text begins; NULL: it begins with none. */
const char *holes_at(const struct holes *h, struct str text);
/* Appends a line of such a text as it is shown, with marks; what is behind max bytes is left out,
 * and no mark is cut. Returns whether all is there; -1: no memory. */
int holes_show(const struct holes *h, struct str line, size_t max, struct buf *to,
	       struct err *e) MUST_USE;
