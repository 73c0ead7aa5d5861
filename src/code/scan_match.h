#pragma once
/* The matcher of code/scan.h: words of a text, the classes they belong to, and rules, which are
 * sequences of classes with few words between. */
#include <stdint.h>

#include "code/scan.h"

enum {
	RULE_STEPS = 6,
	RULES_MAX = 160,
	PART_MAX = 64, /* bytes of a folded word that are compared */
};

/* A set of classes: there are more than 64. */
__extension__ typedef unsigned __int128 scan_classes_t;

struct rule_step {
	scan_classes_t words; /* classes: a word of one of them */
	unsigned gap; /* at most so many words between this and the last one */
};

struct rule {
	enum scan_kind kind;
	struct rule_step steps[RULE_STEPS];
	bool can_be_denied; /* no finding if "not" or "never" stands shortly before */
};

/* Words of classes, separated by spaces; endings of grammar are found without being listed. */
struct word_class {
	scan_classes_t bit;
	const char *words;
};

extern const struct word_class scan_classes[];
extern const size_t scan_classes_n;
extern const struct rule scan_rules[];
extern const size_t scan_rules_n;

#define CLASS(n) ((scan_classes_t)1 << (n))

/* Classes that the matcher gives itself. */
#define CLASS_NOT CLASS(0) /* a word that denies what follows */
#define CLASS_EVEN_NOT CLASS(1) /* a word after which that is no denial: do not forget to */
#define CLASS_FILE CLASS(2) /* the path of a file that is usually secret */
#define CLASS_PLACE CLASS(3) /* an address to which something can be sent */
#define CLASS_LABEL CLASS(4) /* "system:" where a line or sentence begins */
#define CLASS_OTHER_TOOL CLASS(5) /* a tool of another server */
#define CLASS_SOME_TOOL CLASS(6) /* what looks like a tool's name, and is no own one */
#define CLASS_OWN CLASS(7) /* an own tool or argument */

struct matcher;

/* ERR_LIMIT: no memory. */
struct matcher *matcher_new(const struct scan_tools *known, struct err *e) MUST_USE;
void matcher_free(struct matcher *m); /* NULL-safe */
AUTO_DEFINE(matcher_free, struct matcher)

/* A name that is the tool's own, such as an argument's; borrowed. */
void matcher_own(struct matcher *m, struct str name);

/* The part of the text that the first rule of each kind fits: ret[kind] is STR_NONE where none
 * does. */
void matcher_run(struct matcher *m, struct str text, struct str ret[SCAN_KINDS]);

/* Whether a text in lower case stands at a byte (at most text.n), in whatever case. */
bool scan_begins(struct str text, size_t at, const char *low);
