#include "modules/code/scan_match.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "modules/code/clean.h"
#include "modules/code/scan_fold.h"

enum {
	SLOTS = 4096, /* a power of two */
	RULES_MAX = 160,
	RULE_STEPS = 6,
	PART_MAX = 64, /* bytes of a folded word that are compared */
	SENTENCE = 4, /* words that the end of a sentence counts for */
	DENIED = 4, /* words after which a denial no longer holds */
	SPACED = 24, /* letters of a word that is written with blanks in between */
};

/* A set of classes: there are more than 64. */
__extension__ typedef unsigned __int128 scan_set_t;
#define CLASS(n) ((scan_set_t)1 << (n))

struct scan_rule {
	enum scan_kind kind;
	bool can_be_denied;
	size_t n;
	struct {
		scan_set_t classes;
		unsigned gap;
	} steps[RULE_STEPS];
};

/* A word and its classes, by open addressing. */
struct scan_slot {
	struct str word;
	scan_set_t classes;
};

/* Made of scan_rules.c when the first text is scanned. */
static struct {
	struct scan_slot slots[SLOTS];
	struct scan_rule rules[RULES_MAX];
	size_t rules_n, used;
} table;

struct scan_matcher {
	const struct json_val *tool;
	const struct scan_names *own;
	struct str text;
	/* Where each rule stands: for each step the last word that it fits, and the byte at which
	 * that beginning began. 0: none. */
	struct {
		size_t at[RULE_STEPS], from[RULE_STEPS];
	} rules[RULES_MAX];
	size_t at; /* number of the last word, from SENTENCE */
	size_t denied; /* number of the last word that denies */
	bool begins; /* a sentence or line */
	char spaced[SPACED]; /* letters that stand alone */
	size_t spaced_n, spaced_from, spaced_end;
	struct str key_file; /* the first path of such a file */
	bool english;
	struct str *ret;
};

/* A word of the text, folded. */
struct scan_part {
	char p[PART_MAX];
	size_t n;
	size_t from, end; /* bytes of the text */
};

/* ---- the table ------------------------------------------------------------------------------- */

static struct scan_slot *table_slot(struct str word)
{
	uint64_t h = 0xcbf29ce484222325u;
	size_t i;

	for (i = 0; i < word.n; i++)
		h = (h ^ (unsigned char)word.p[i]) * 0x100000001b3u;
	for (i = h % SLOTS; table.slots[i].word.p && !str_eq(table.slots[i].word, word);
	     i = (i + 1) % SLOTS)
		;
	return &table.slots[i];
}

static void table_words(const char *at, scan_set_t class)
{
	for (size_t n; *at; at += n + (at[n] == ' ')) {
		struct scan_slot *slot;

		n = strcspn(at, " ");
		slot = table_slot((struct str){ at, n });
		if (!slot->word.p && ++table.used > SLOTS / 2)
			abort();
		slot->word = (struct str){ at, n };
		slot->classes |= class;
	}
}

/* The classes of "A|B", up to the end of the step. */
static scan_set_t table_classes(const char **at)
{
	scan_set_t set = 0;

	for (size_t n; **at && !strchr(" ;", **at); *at += n + ((*at)[n] == '|')) {
		size_t i = 0;

		n = strcspn(*at, "| ;");
		while (i < scan_classes_n && !str_is((struct str){ *at, n }, scan_classes[i].name))
			i++;
		if (i == scan_classes_n)
			abort();
		set |= CLASS(i);
	}
	return set;
}

static void table_rules(enum scan_kind kind, const char *at)
{
	while (at && *at) {
		struct scan_rule *r = &table.rules[table.rules_n++];

		if (table.rules_n > RULES_MAX)
			abort();
		r->kind = kind;
		r->can_be_denied = *at == '~';
		for (at += *at == '~'; *at != ';'; at += *at == ' ') {
			if (r->n == RULE_STEPS)
				abort();
			if (*at >= '0' && *at <= '9') {
				r->steps[r->n].gap = (unsigned)strtoul(at, (char **)&at, 10);
				continue;
			}
			r->steps[r->n++].classes = table_classes(&at);
		}
		at++;
	}
}

static void table_make(void)
{
	if (scan_classes_n > SCAN_CLASSES_MAX)
		abort();
	for (size_t i = 0; i < scan_classes_n; i++)
		table_words(scan_classes[i].words, CLASS(i));
	for (unsigned kind = 0; kind < SCAN_KINDS; kind++)
		table_rules((enum scan_kind)kind, scan_rules[kind]);
}

/* The word, or without the ending of a plural, of a past or of an -ing. */
static scan_set_t stem_classes(struct str w)
{
	static const struct {
		const char *ending;
		size_t cut;
		const char *more; /* to add after the cut */
	} forms[] = {
		{ "s", 1, "" },	   { "es", 2, "" },	{ "ies", 3, "y" },
		{ "ed", 2, "" },   { "d", 1, "" },	{ "ing", 3, "" },
		{ "ing", 3, "e" }, { "ying", 4, "ie" }, { "ly", 2, "" },
	};
	scan_set_t set = table_slot(w)->classes;
	char text[PART_MAX + 2];

	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		if (w.n < forms[i].cut + 3 || !str_ends(w, forms[i].ending))
			continue;
		memcpy(text, w.p, w.n - forms[i].cut);
		strcpy(text + w.n - forms[i].cut, forms[i].more);
		set |= table_slot(str_of(text))->classes;
	}
	return set;
}

/* 1gn0r3 */
static scan_set_t leet_classes(struct str w)
{
	static const char digits[] = "0134578", letters[] = "oieastb";
	char text[PART_MAX];
	bool letter = false, digit = false;

	for (size_t i = 0; i < w.n; i++) {
		const char *d = strchr(digits, w.p[i]);

		letter = letter || (w.p[i] >= 'a' && w.p[i] <= 'z');
		digit = digit || d;
		text[i] = d ? letters[d - digits] : w.p[i];
	}
	return letter && digit && w.n > 3 ? stem_classes((struct str){ text, w.n }) : 0;
}

/* ---- rules ---------------------------------------------------------------------------------- */

/* A word of these classes stands at m->at. */
static void match_take(struct scan_matcher *m, scan_set_t set, size_t from, size_t end)
{
	for (size_t i = 0; set && i < table.rules_n; i++) {
		const struct scan_rule *r = &table.rules[i];
		size_t *at = m->rules[i].at, *begun = m->rules[i].from;

		for (size_t k = r->n; k-- > 0;) {
			if (!(set & r->steps[k].classes) ||
			    (k > 0 ? !at[k - 1] || m->at <= at[k - 1] ||
					     m->at - at[k - 1] > r->steps[k].gap + 1
				   : r->can_be_denied && m->denied && m->at - m->denied <= DENIED))
				continue;
			at[k] = m->at;
			begun[k] = k > 0 ? begun[k - 1] : from;
			if (k + 1 == r->n && !m->ret[r->kind].p)
				m->ret[r->kind] = (struct str){ m->text.p + begun[k],
								end - begun[k] };
		}
	}
	if (set & CLASS(SCAN_DESPITE))
		m->denied = 0;
	if (set & CLASS(SCAN_NOT))
		m->denied = m->at;
}

/* The same for something that begins where the next word does. */
static void match_take_next(struct scan_matcher *m, scan_set_t set, size_t from, size_t end)
{
	m->at++;
	match_take(m, set, from, end);
	m->at--;
}

/* ---- words of a text ------------------------------------------------------------------------ */

static void match_end_spaced(struct scan_matcher *m)
{
	if (m->spaced_n >= 4)
		match_take(m, stem_classes((struct str){ m->spaced, m->spaced_n }), m->spaced_from,
			   m->spaced_end);
	m->spaced_n = 0;
}

/* "i g n o r e": letters that stand alone, one character apart, are a word too. */
static void match_spaced(struct scan_matcher *m, const struct scan_part *w)
{
	if (w->n != 1 || (m->spaced_n && w->from > m->spaced_end + 1))
		match_end_spaced(m);
	if (w->n != 1 || m->spaced_n == SPACED)
		return;
	if (!m->spaced_n)
		m->spaced_from = w->from;
	m->spaced[m->spaced_n++] = w->p[0];
	m->spaced_end = w->end;
}

static void match_part(struct scan_matcher *m, struct scan_part *w)
{
	struct str word = { w->p, w->n };
	scan_set_t set;

	if (w->n == 0)
		return;
	m->at++;
	set = stem_classes(word);
	if (!set)
		set = leet_classes(word);
	if (!m->begins || w->end >= m->text.n || m->text.p[w->end] != ':')
		set &= ~CLASS(SCAN_LABEL);
	m->begins = false;
	m->english = m->english || set & CLASS(SCAN_ENGLISH);
	match_take(m, set, w->from, w->end);
	match_spaced(m, w);
	w->n = 0;
}

static bool is_word_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool match_is_own(const struct scan_matcher *m, struct str name)
{
	for (size_t i = 0; i < m->own->n; i++) {
		if (str_eq(m->own->p[i], name))
			return true;
	}
	return false;
}

/* A name such as send_email, before its parts. Returns where it ends. */
static size_t match_name(struct scan_matcher *m, size_t from)
{
	const struct json_val *own = json_get(json_get(m->tool, "inputSchema"), "properties");
	size_t end = from, n;
	struct str name;

	while (end < m->text.n &&
	       (is_word_char(m->text.p[end]) || (m->text.p[end] && strchr("_-./", m->text.p[end]))))
		end++;
	for (n = end - from; n > 0 && !is_word_char(m->text.p[from + n - 1]);)
		n--;
	name = (struct str){ m->text.p + from, n };
	if (n > 0 && memchr(name.p, '_', n) && !memchr(name.p, '/', n) && !memchr(name.p, '.', n) &&
	    !str_eq(name, json_str(json_get(m->tool, "name"))) && !json_get_str(own, name) &&
	    !match_is_own(m, name))
		match_take_next(m, CLASS(SCAN_TOOLNAME), from, from + n);
	return end;
}

/* Files that nothing but their owner's programs should read. Of the first KEY_PATHS a text that is
 * not English says more than the rules can read. */
/* clang-format off */
enum { KEY_PATHS = 20 };
static const char *const secret_paths[] = {
	"~/.ssh", ".ssh/", "id_rsa", "id_ed25519", "id_ecdsa", "authorized_keys",
	".aws/credentials", "~/.netrc", ".netrc", "~/.npmrc", "~/.pypirc", "~/.gnupg",
	"/etc/passwd", "/etc/shadow", ".bash_history", "~/.zsh_history",
	".git-credentials", "wallet.dat", "login.keychain", "/proc/self/environ",
	"~/.aws", "~/.config/gcloud", "~/.kube", ".kube/config", "~/.docker/config",
	"~/.env", ".env", "~/.bash_history", "~/.git-credentials", "mcp.json", "~/.cursor",
	"~/.claude", "claude_desktop_config", "credentials.json",
	"secrets.yaml", "secrets.json",
	"process.env", "~/.config", "~/.codex", ".pem", "/.dockerenv",
};
/* clang-format on */

bool scan_begins(struct str text, size_t at, const char *low)
{
	size_t n = strlen(low);

	return n <= text.n - at && strncasecmp(text.p + at, low, n) == 0;
}

/* Paths and addresses, where neither a word nor a number stands before. */
static void match_path(struct scan_matcher *m, size_t at)
{
	bool inside = at > 0 && is_word_char(m->text.p[at - 1]);
	char c = m->text.p[at];

	if (c == '@' && inside && at + 1 < m->text.n && is_word_char(m->text.p[at + 1]))
		match_take_next(m, CLASS(SCAN_PLACE), at, at + 1);
	if (inside || !strchr("~./iaIAhHmMcCwWsSlLpP", c))
		return;
	if (scan_begins(m->text, at, "https://") || scan_begins(m->text, at, "http://"))
		match_take_next(m, CLASS(SCAN_PLACE), at, at + 7);
	for (size_t i = 0; i < ARRAY_LEN(secret_paths); i++) {
		const char *p = secret_paths[i];
		size_t end = at + strlen(p);

		if ((p[0] == c || p[0] == c + 32) && scan_begins(m->text, at, p) &&
		    (end == m->text.n || !is_word_char(m->text.p[end]) || p[end - at - 1] == '/')) {
			if (i < KEY_PATHS && !m->key_file.p)
				m->key_file = (struct str){ m->text.p + at, end - at };
			match_take_next(m, CLASS(SCAN_FILE), at, end);
			return;
		}
	}
}

void scan_match(struct str text, const struct json_val *tool, const struct scan_names *own,
		struct str ret[SCAN_KINDS])
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct scan_matcher m = {
		.tool = tool, .own = own, .text = text, .at = SENTENCE, .begins = true, .ret = ret
	};
	struct scan_part w = { .n = 0 };
	size_t name = 0, lines = 0;

	pthread_once(&once, table_make);
	memset(ret, 0, SCAN_KINDS * sizeof(*ret));
	for (size_t at = 0; at < text.n;) {
		size_t from = at;
		uint32_t c = clean_char(text, &at);
		char f = scan_fold(c);

		if (f == 0 || c == '\'' || c == 0x2019)
			continue;
		match_path(&m, from);
		if (f != ' ') {
			if (w.n == 0)
				w.from = from;
			if (w.n == 0 && from >= name && is_word_char(text.p[from]))
				name = match_name(&m, from);
			if (w.n < PART_MAX)
				w.p[w.n++] = f;
			w.end = at;
			lines = 0;
			continue;
		}
		match_part(&m, &w);
		lines += c == '\n';
		m.begins = m.begins || c == '\n';
		if (((c == '.' || c == '!' || c == '?' || c == ';') && at < text.n &&
		     strchr(" \n\t\r\"')*", text.p[at])) ||
		    (c == '\n' && lines == 2)) {
			m.at += SENTENCE;
			m.begins = true;
		}
	}
	match_part(&m, &w);
	match_end_spaced(&m);
	if (m.key_file.p && !m.english && !ret[SCAN_SECRETS].p)
		ret[SCAN_SECRETS] = m.key_file;
}
