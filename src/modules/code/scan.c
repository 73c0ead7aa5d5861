#include "modules/code/scan.h"

#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "json/document/pointer.h"
#include "json/document/utf8.h"
#include "modules/code/clean.h"
#include "modules/code/scan_match.h"

enum {
	ENCODED_MIN = 24, /* characters of an encoded text */
	DECODED_MAX = 16 << 10,
	PADDING = 60, /* blanks in a row that push text out of sight */
	AROUND = 24, /* bytes shown before a finding */
};

const char *const scan_kind_names[SCAN_KINDS] = {
	[SCAN_OVERRIDE] = "override", [SCAN_ROLE] = "role",	  [SCAN_MARKUP] = "markup",
	[SCAN_SECRECY] = "secrecy",   [SCAN_CONSENT] = "consent", [SCAN_SECRETS] = "secrets",
	[SCAN_SENDING] = "sending",   [SCAN_TOOLS] = "tools",	  [SCAN_COMMAND] = "command",
	[SCAN_ENCODED] = "encoded",   [SCAN_HIDDEN] = "hidden",
};

const char *const scan_kind_texts[SCAN_KINDS] = {
	[SCAN_OVERRIDE] = "It tells the model to set its instructions aside.",
	[SCAN_ROLE] = "It poses as a message of the system, or gives the model another role.",
	[SCAN_MARKUP] = "It has directives in tags or comments.",
	[SCAN_SECRECY] = "It wants something kept from the user.",
	[SCAN_CONSENT] = "It wants to act without the user's consent, or claims to have it.",
	[SCAN_SECRETS] = "It wants secret files or values.",
	[SCAN_SENDING] = "It wants the conversation or data sent somewhere.",
	[SCAN_TOOLS] = "It tells the model how to use tools of others.",
	[SCAN_COMMAND] = "It wants a command to be run.",
	[SCAN_ENCODED] = "It has encoded text.",
	[SCAN_HIDDEN] = "It has text that a reader does not see.",
};

struct scan {
	const struct json_val *tool;
	const struct scan_names *own;
	struct arena *arena;
	struct scan_findings *ret;
	struct err *e;
	unsigned told; /* kinds that were found in this string */
};

static int scan_add(struct scan *s, enum scan_kind kind, struct str where, struct str text,
		    struct str found)
{
	autobuf struct buf b = BUF_INIT(SCAN_EXCERPT_CHARS * 4 + 8);
	size_t from = (size_t)(found.p - text.p), back = from < AROUND ? from : AROUND;
	struct scan_finding *f = &s->ret->p[s->ret->n];

	if (s->told & 1u << kind || s->ret->n == SCAN_MAX)
		return 0;
	while (back > 0 && back < from && ((unsigned char)text.p[from - back] & 0xc0) == 0x80)
		back--;
	text = (struct str){ text.p + from - back, text.n - from + back };
	if (clean_text(&b, text, CLEAN_REVEAL, SCAN_EXCERPT_CHARS, s->e) < 0)
		return -1;
	*f = (struct scan_finding){
		kind,
		{ arena_dup(s->arena, where, s->e), where.n },
		{ arena_dup(s->arena, buf_str(&b), s->e), b.n },
	};
	if (!f->where.p || !f->excerpt.p)
		return -1;
	s->told |= 1u << kind;
	s->ret->n++;
	return 0;
}

/* ---- by rules ------------------------------------------------------------------------------- */

static int scan_rules_of(struct scan *s, struct str where, struct str text)
{
	struct str found[SCAN_KINDS];

	scan_match(text, s->tool, s->own, found);
	for (unsigned kind = 0; kind < SCAN_KINDS; kind++) {
		if (found[kind].p &&
		    scan_add(s, (enum scan_kind)kind, where, text, found[kind]) < 0)
			return -1;
	}
	return 0;
}

/* ---- markup --------------------------------------------------------------------------------- */

/* What encloses messages of a model, or directives in many known attacks; in lower case. The last
 * of SCAN_OVERRIDE are of other scripts: "ignore what is before", "ignore the instructions". */
/* clang-format off */
static const struct {
	enum scan_kind kind;
	const char *texts[32];
} marks[] = {
	{ SCAN_MARKUP,
	  { "<important>", "</important>", "<critical>", "<hidden>", "<secret_instruction",
	    "<directive", "<priority>", "<mandatory>", "<urgent>", "[important]",
	    "note to ai:", "note to the model", "instructions for the ai",
	    "instruction to the model" } },
	{ SCAN_ROLE,
	  { "<system-reminder>", "<system_prompt>", "<system>", "</system>", "<assistant>",
	    "<|im_start|>", "<|im_end|>", "<|system|>", "<|endoftext|>", "<|eot_id|>",
	    "<|start_header_id|>", "[inst]", "[/inst]", "<<sys>>", "[system]",
	    "[system prompt]", "### system", "### instruction", "<function_calls>",
	    "<tool_call>", "</tool_result>", "\n\nhuman:", "\n\nassistant:", "pretend that",
	    "hey assistant" } },
	{ SCAN_COMMAND,
	  { "| sh", "| bash", "|bash", "rm -rf /", "rm -rf ~", "eval(atob(", "chmod 777",
	    "chmod -r 777", "core.hookspath" } },
	{ SCAN_CONSENT, { "autoapprove", "auto-approve all" } },
	/* "don't tell the user", "without telling", in other languages */
	{ SCAN_SECRECY,
	  { "不要告诉", "不要告知", "别告诉", "ユーザーには知らせ", "ユーザーに知らせ", "ユーザーに伝え",
	    "사용자에게 알리지", "사용자에게 말하지", "не сообщай", "не говори", "без ведома",
	    "دون إخبار", "لا تخبر", "को न बता", "को मत बता", "kullanıcıya söyleme",
	    "kullanıcıya bildirme", "nie mów", "nie informuj", "ohne den benutzer",
	    "ohne den nutzer", "nicht informieren", "sans en informer", "sans informer",
	    "sans prévenir", "ne le dis pas" } },
	{ SCAN_SECRECY,
	  { "no se lo digas", "no le digas", "sin informar", "não diga", "não conte",
	    "sem informar", "sem avisar", "non dire nulla", "senza informare",
	    "niet aan de gebruiker", "zonder de gebruiker", "đừng nói", "jangan beri tahu" } },
	{ SCAN_OVERRIDE,
	  { "from now on", "the real task", "pay no attention", "stop what you are doing",
	    "no longer apply", "指示をすべて無視", "지시를 무시", "talimatları yok say",
	    "talimatları unut", "zignoruj", "निर्देशों को अनदेखा", "bỏ qua các",
	    "忽略之前", "忽略以上", "忽略所有", "忽略先前", "гнорируй", "指示を無視", "이전 지시",
	    "تجاهل" } },
};
/* clang-format on */

static char scan_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static int scan_marks(struct scan *s, struct str where, struct str text)
{
	for (size_t at = 0; at < text.n; at++) {
		char c = scan_lower(text.p[at]);

		if ((unsigned char)c < 0x80 && !strchr("<[#|\nacdefhijknoprstz", c))
			continue; /* no mark begins with it */
		for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
			for (const char *const *t = marks[i].texts; *t; t++) {
				if (**t == c && scan_begins(text, at, *t) &&
				    scan_add(s, marks[i].kind, where, text,
					     (struct str){ text.p + at, 1 }) < 0)
					return -1;
			}
		}
	}
	return 0;
}

static size_t words_of(struct str s)
{
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++)
		n += s.p[i] == ' ' && i > 0 && s.p[i - 1] != ' ';
	return n;
}

/* A comment of HTML with a sentence in it, and a picture whose address takes something along. */
static int scan_links(struct scan *s, struct str where, struct str text)
{
	static const char open[] = "<!--", close[] = "-->", picture[] = "](http";
	const char *at = text.p, *end = text.p + text.n, *stop;

	while ((at = memmem(at, (size_t)(end - at), open, sizeof(open) - 1))) {
		stop = memmem(at, (size_t)(end - at), close, sizeof(close) - 1);
		if (words_of((struct str){ at, (size_t)((stop ? stop : end) - at) }) >= 4)
			return scan_add(s, SCAN_MARKUP, where, text, (struct str){ at, 1 });
		at = stop ? stop : end;
	}
	at = memmem(text.p, text.n, picture, sizeof(picture) - 1);
	stop = at ? memchr(at, ')', (size_t)(end - at)) : NULL;
	if (stop && memchr(at, '=', (size_t)(stop - at)) &&
	    (memchr(at, '{', (size_t)(stop - at)) || memchr(at, '[', (size_t)(stop - at)) ||
	     memchr(at, '<', (size_t)(stop - at))))
		return scan_add(s, SCAN_SENDING, where, text, (struct str){ at, 1 });
	return 0;
}

/* ---- what is not seen ----------------------------------------------------------------------- */

/* Letters as tags (U+E0000 and so on) are read by models, and by nobody else. */
static int scan_tags(struct scan *s, struct str where, struct str text)
{
	autobuf struct buf b = BUF_INIT(DECODED_MAX);

	for (size_t at = 0; at < text.n;) {
		uint32_t c = clean_char(text, &at);
		char plain = (char)(c & 0x7f);

		if (c >= 0xe0020 && c <= 0xe007e && b.n < DECODED_MAX &&
		    buf_add(&b, &plain, 1, s->e) < 0)
			return -1;
	}
	return b.n ? scan_rules_of(s, where, buf_str(&b)) : 0;
}

static int scan_hidden(struct scan *s, struct str where, struct str text)
{
	size_t blanks = 0, bom = str_starts(text, "\xef\xbb\xbf") ? 3 : 0;

	if (clean_changes((struct str){ text.p + bom, text.n - bom })) {
		if (scan_add(s, SCAN_HIDDEN, where, text, (struct str){ text.p, 1 }) < 0 ||
		    scan_tags(s, where, text) < 0)
			return -1;
	}
	for (size_t i = 0; i < text.n; i++) {
		bool blank = text.p[i] == ' ' || text.p[i] == '\t' || text.p[i] == '\n';

		if (!blank && blanks >= PADDING && blanks < i)
			return scan_add(s, SCAN_HIDDEN, where, text, (struct str){ text.p + i, 1 });
		blanks = blank ? blanks + 1 : 0;
	}
	return 0;
}

/* ---- encoded texts -------------------------------------------------------------------------- */

static bool is_base64(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '+' || c == '/' || c == '-' || c == '_';
}

static int hex_value(char c)
{
	c = scan_lower(c);
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Prose: printable, with blanks and letters. */
static bool is_prose(struct str s)
{
	size_t letters = 0, blanks = 0;

	for (size_t i = 0; i < s.n; i++) {
		if ((unsigned char)s.p[i] < ' ' && s.p[i] != '\n')
			return false;
		if ((unsigned char)s.p[i] > '~')
			return false;
		letters += scan_lower(s.p[i]) >= 'a' && scan_lower(s.p[i]) <= 'z';
		blanks += s.p[i] == ' ';
	}
	return blanks >= 2 && letters * 4 >= s.n * 3;
}

/* Digits of base64, of both alphabets, without padding. */
static int decode_base64(struct buf *to, struct str run, struct err *e)
{
	autobuf struct buf b = BUF_INIT(DECODED_MAX * 4 / 3);

	run.n = run.n < b.max / 4 * 4 ? run.n : b.max / 4 * 4;
	if (buf_add(&b, run.p, run.n, e) < 0 || buf_add(&b, "AAA", -run.n & 3, e) < 0)
		return -1;
	for (size_t i = 0; i < b.n; i++)
		b.p[i] = b.p[i] == '-' ? '+' : b.p[i] == '_' ? '/' : b.p[i];
	if (base64_decode(to, buf_str(&b), e) < 0)
		return -1;
	to->n = run.n * 3 / 4;
	return 0;
}

static int decode_hex(struct buf *to, struct str run, struct err *e)
{
	for (size_t i = 0; i + 1 < run.n && to->n < DECODED_MAX; i += 2) {
		char byte = (char)(hex_value(run.p[i]) << 4 | hex_value(run.p[i + 1]));

		if (buf_add(to, &byte, 1, e) < 0)
			return -1;
	}
	return 0;
}

static int scan_run(struct scan *s, struct str where, struct str text, struct str run)
{
	autobuf struct buf b = BUF_INIT(DECODED_MAX);
	bool hex = true;

	for (size_t i = 0; i < run.n && hex; i++)
		hex = hex_value(run.p[i]) >= 0;
	if ((hex ? decode_hex(&b, run, s->e) : decode_base64(&b, run, s->e)) < 0)
		return -1;
	if (!is_prose(buf_str(&b)))
		return 0;
	if (scan_add(s, SCAN_ENCODED, where, text, run) < 0)
		return -1;
	return scan_rules_of(s, where, buf_str(&b));
}

/* Bytes or characters by number: %69, \x69, \u0069, &#105; one after the other. */
static size_t number_form(struct str text, size_t at, char *ret)
{
	size_t digits = 0, i = at;
	unsigned v = 0, base = 16;

	if (text.p[i] == '%') {
		i++;
	} else if (scan_begins(text, i, "\\x") || scan_begins(text, i, "\\u")) {
		i += 2;
	} else if (scan_begins(text, i, "&#")) {
		i += 2;
		if (i < text.n && scan_lower(text.p[i]) == 'x')
			i++;
		else
			base = 10;
	} else {
		return 0;
	}
	for (; i < text.n && digits < (text.p[at] == '%' ? 2 : 5) && hex_value(text.p[i]) >= 0;
	     i++, digits++)
		v = v * base + (unsigned)hex_value(text.p[i]);
	if (base == 10 && i < text.n && text.p[i] == ';')
		i++;
	else if (text.p[at] == '&' && i < text.n && text.p[i] == ';')
		i++;
	*ret = v >= ' ' && v <= '~' ? (char)v : '\1';
	return digits >= 2 ? i - at : 0;
}

static int scan_numbers(struct scan *s, struct str where, struct str text)
{
	autobuf struct buf b = BUF_INIT(DECODED_MAX);
	size_t from = 0, n;

	for (size_t at = 0; at < text.n; at += n ? n : 1) {
		char c;

		n = number_form(text, at, &c);
		if (n && b.n < DECODED_MAX) {
			from = b.n ? from : at;
			if (buf_add(&b, &c, 1, s->e) < 0)
				return -1;
		} else if (b.n) {
			if (b.n >= ENCODED_MIN / 2 && is_prose(buf_str(&b)))
				break;
			b.n = 0;
		}
	}
	if (b.n < ENCODED_MIN / 2 || !is_prose(buf_str(&b)))
		return 0;
	if (scan_add(s, SCAN_ENCODED, where, text, (struct str){ text.p + from, 1 }) < 0)
		return -1;
	return scan_rules_of(s, where, buf_str(&b));
}

static int scan_encoded(struct scan *s, struct str where, struct str text)
{
	for (size_t at = 0; at < text.n;) {
		size_t from = at;

		while (at < text.n && is_base64(text.p[at]))
			at++;
		if (at - from >= ENCODED_MIN &&
		    scan_run(s, where, text, (struct str){ text.p + from, at - from }) < 0)
			return -1;
		at += at == from;
	}
	return scan_numbers(s, where, text);
}

/* ---- the walk ------------------------------------------------------------------------------- */

static int scan_at(struct scan *s, const struct json_place *at, struct str text)
{
	struct json_pointer p = JSON_POINTER_INIT;
	struct str where;

	json_pointer_place(&p, at);
	where = (struct str){ p.text, p.n };
	s->told = 0;
	if (!text.n || s->ret->n == SCAN_MAX)
		return 0;
	if (scan_hidden(s, where, text) < 0 || scan_marks(s, where, text) < 0 ||
	    scan_links(s, where, text) < 0 || scan_rules_of(s, where, text) < 0)
		return -1;
	return scan_encoded(s, where, text);
}

static int scan_val(struct scan *s, const struct json_place *at, const struct json_val *v)
{
	struct json_iter it = json_iter(v);

	if (json_type(v) == JSON_STR)
		return scan_at(s, at, json_str(v));
	while (json_next(&it)) {
		struct json_place in = { at, it.key, it.index };

		if (it.key.p && scan_at(s, &in, it.key) < 0)
			return -1;
		if (scan_val(s, &in, it.val) < 0)
			return -1;
	}
	return 0;
}

int scan_tool(const struct json_val *tool, const struct scan_names *own, struct arena *a,
	      struct scan_findings *ret, struct err *e)
{
	struct scan s = { .tool = tool, .own = own, .arena = a, .ret = ret, .e = e };
	struct json_place root = { NULL, STR_NONE, 0 };

	return scan_val(&s, &root, tool);
}
