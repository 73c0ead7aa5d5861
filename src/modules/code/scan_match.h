#pragma once
/*
 * The matcher of modules/code/scan.h: words of a text, the classes they belong to, and rules, which
 * are sequences of classes. Words stand in one line, without the endings of grammar.
 *
 * A rule names the class or classes ("A|B") of each of its words, and between two how many others
 * may stand there at most; no number is none. ";" ends a rule. "~" before it: no finding where a
 * word of NOT stands shortly before.
 */
#include "modules/code/scan.h"

struct scan_class {
	const char *name, *words;
};

/* Rows of scan_classes that the matcher knows. */
enum {
	SCAN_NOT, /* a word that denies what follows */
	SCAN_DESPITE, /* a word after which that is no denial: do not forget to */
	SCAN_FILE, /* the path of a file that is usually secret */
	SCAN_PLACE, /* an address to which something can be sent */
	SCAN_LABEL, /* "system:" where a line or sentence begins */
	SCAN_TOOLNAME, /* what looks like the name of another tool */
	SCAN_ENGLISH, /* a word that few English texts lack */
	SCAN_CLASSES_MAX = 128,
};

extern const struct scan_class scan_classes[];
extern const size_t scan_classes_n;
extern const char *const scan_rules[SCAN_KINDS]; /* NULL: none */

/* The part of the text that the first rule of each kind fits: ret[kind] is STR_NONE where none
 * does. tool: the definition that the text is of; own: as of scan_tool(). */
void scan_match(struct str text, const struct json_val *tool, const struct scan_names *own,
		struct str ret[SCAN_KINDS]);

/* Whether a text in lower case stands at a byte (at most text.n), in whatever case. */
bool scan_begins(struct str text, size_t at, const char *low);
