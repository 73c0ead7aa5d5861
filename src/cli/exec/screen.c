#include "cli/exec/screen.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

/* Private modes in the order in which they are set; unset in the opposite one. Others change only
 * how the screen looks, which the program draws anew. */
static const struct {
	unsigned number;
	bool on; /* at first */
} modes[] = {
	{ 1049, false }, { 1047, false }, { 47, false }, /* the alternate screen */
	{ 1, false }, /* keys of the cursor */
	{ 7, true }, /* lines wrap */
	{ 12, false }, /* the cursor blinks */
	{ 25, true }, /* it is shown */
	{ 9, false },	 { 1000, false }, { 1001, false }, { 1002, false },
	{ 1003, false }, /* mouse */
	{ 1005, false }, { 1006, false }, { 1015, false }, { 1016, false }, /* its encoding */
	{ 1004, false }, /* focus is told */
	{ 1007, false }, /* the wheel as keys */
	{ 2004, false }, /* pasted text has brackets */
	{ 2031, false }, /* changes of colours are told */
	{ 2048, false }, /* sizes, too */
	{ 9001, false }, /* keys as Windows has them */
};
static_assert(ARRAY_LEN(modes) <= SCREEN_MODES, "a bit of struct screen for each");

enum { ALTERNATE = 7 }; /* the bits of the alternate screen */

static void screen_set_mode(struct screen *s, unsigned number, bool on)
{
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		if (modes[i].number != number)
			continue;
		if (modes[i].on == on)
			s->changed &= ~(1u << i);
		else
			s->changed |= 1u << i;
		s->touched |= (1u << i & ALTERNATE) != 0;
	}
}

/* The numbers of a sequence, of which a missing one is none. */
static unsigned screen_number(const char *params, unsigned none)
{
	const char *at = params + strspn(params, "<=>?");
	unsigned long n = *at >= '0' && *at <= '9' ? strtoul(at, NULL, 10) : none;

	return n > 9999 ? 9999 : (unsigned)n;
}

static unsigned screen_second(const char *params, unsigned none)
{
	const char *next = strchr(params, ';');

	return next ? screen_number(next + 1, none) : none;
}

static void screen_modes(struct screen *s, bool on)
{
	for (const char *at = s->params; at; at = strchr(at + 1, ';'))
		screen_set_mode(s, screen_number(at + (*at == ';'), 0), on);
}

/* The protocol of kitty: ">N u" pushes, "<N u" pops, "=N;M u" changes. */
static void screen_keyboard(struct screen *s)
{
	unsigned n = screen_number(s->params, *s->params == '<'), how = screen_second(s->params, 1);

	if (*s->params == '>') {
		s->keyboards += s->keyboards < 16;
		s->keyboard = n;
	} else if (*s->params == '<') {
		s->keyboards -= n < s->keyboards ? n : s->keyboards;
		s->keyboard = s->keyboards ? s->keyboard : 0;
	} else if (*s->params == '=') {
		s->keyboard = how == 2 ? s->keyboard | n : how == 3 ? s->keyboard & ~n : n;
	}
}

static void screen_csi(struct screen *s, char last)
{
	char first = s->params[0];
	bool plain = !first || first == ';' || (first >= '0' && first <= '9');

	if ((last == 'h' || last == 'l') && first == '?')
		screen_modes(s, last == 'h');
	else if (last == 'u' && first && strchr("<=>", first))
		screen_keyboard(s);
	else if (last == 'u' && plain)
		s->saved = false;
	else if (last == 's' && !first)
		s->saved = true;
	else if (last == 'm' && first == '>')
		s->other_keys = screen_number(s->params, 4) == 4 ? screen_second(s->params, 0)
								 : s->other_keys;
	else if (last == 'q' && s->n_params && s->params[s->n_params - 1] == ' ')
		s->cursor = screen_number(s->params, 0);
	else if (last == 'r' && plain) {
		s->region = first != '\0';
		s->touched = true;
	} else if (last == 'p' && strcmp(s->params, "!") == 0)
		s->region = s->keypad = s->saved = false; /* a soft reset */
}

static void screen_escape(struct screen *s, char c)
{
	s->state = SCREEN_GROUND;
	switch (c) {
	case '[':
		s->state = SCREEN_CSI;
		s->n_params = 0;
		s->params[0] = '\0';
		break;
	case ']':
	case 'P':
	case 'X':
	case '^':
	case '_':
		s->state = SCREEN_STRING;
		break;
	case '7':
	case '8':
		s->saved = c == '7';
		break;
	case '=':
	case '>':
		s->keypad = c == '=';
		break;
	case 'c':
		*s = (struct screen){ .touched = true };
		break;
	case '\x1b':
		s->state = SCREEN_ESCAPE;
		break;
	default:
		if (c >= ' ' && c <= '/')
			s->state = SCREEN_BETWEEN;
	}
}

static void screen_param(struct screen *s, char c)
{
	if (c >= '@' && c <= '~') {
		s->state = SCREEN_GROUND;
		screen_csi(s, c);
	} else if (c == '\x1b') {
		s->state = SCREEN_ESCAPE;
	} else if (c >= ' ' && s->n_params < SCREEN_PARAMS_MAX - 1) {
		s->params[s->n_params++] = c;
		s->params[s->n_params] = '\0';
	}
}

static void screen_ground(struct screen *s, char c)
{
	unsigned char u = (unsigned char)c;

	if (c == '\x1b')
		s->state = SCREEN_ESCAPE;
	else if ((u & 0xc0) == 0x80)
		s->rest -= s->rest > 0;
	else
		s->rest = u >= 0xf0 ? 3 : u >= 0xe0 ? 2 : u >= 0xc0 ? 1 : 0;
}

void screen_feed(struct screen *s, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char c = p[i];

		switch (s->state) {
		case SCREEN_GROUND:
			screen_ground(s, c);
			break;
		case SCREEN_ESCAPE:
			screen_escape(s, c);
			break;
		case SCREEN_BETWEEN:
			if (c < ' ' || c > '/')
				s->state = c == '\x1b' ? SCREEN_ESCAPE : SCREEN_GROUND;
			break;
		case SCREEN_CSI:
			screen_param(s, c);
			break;
		case SCREEN_STRING:
			s->state = c == '\a'   ? SCREEN_GROUND
				 : c == '\x1b' ? SCREEN_STRING_ESCAPE
					       : SCREEN_STRING;
			break;
		case SCREEN_STRING_ESCAPE:
			/* ST, or the sequence that breaks the text off */
			if (c == '\\')
				s->state = SCREEN_GROUND;
			else
				screen_escape(s, c);
			break;
		}
	}
}

bool screen_is_alternate(const struct screen *s)
{
	return (s->changed & ALTERNATE) != 0;
}

bool screen_is_idle(const struct screen *s)
{
	return s->state == SCREEN_GROUND && s->rest == 0 && !s->saved;
}

/* ---- sequences ------------------------------------------------------------------------------- */

struct text {
	char *p;
	size_t n;
};

PRINTF_LIKE(2, 3)
static void text_add(struct text *t, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(t->p + t->n, SCREEN_TEXT_MAX - t->n, fmt, args);
	va_end(args);
	if (n > 0 && (size_t)n < SCREEN_TEXT_MAX - t->n)
		t->n += (size_t)n;
}

static void text_mode(struct text *t, size_t i, bool on)
{
	text_add(t, "\x1b[?%u%c", modes[i].number, on ? 'h' : 'l');
}

size_t screen_undo(const struct screen *s, char to[SCREEN_TEXT_MAX])
{
	struct text t = { to, 0 };

	if (s->state != SCREEN_GROUND)
		text_add(&t, "\x1b\\"); /* ends a text that is not whole */
	if (s->state != SCREEN_GROUND || s->changed)
		text_add(&t, "\x1b[0m");
	if (s->region)
		text_add(&t, "\x1b[r");
	if (s->keypad)
		text_add(&t, "\x1b>");
	if (s->cursor)
		text_add(&t, "\x1b[0 q");
	if (s->other_keys)
		text_add(&t, "\x1b[>4m");
	if (s->keyboards)
		text_add(&t, "\x1b[<%uu", s->keyboards);
	else if (s->keyboard)
		text_add(&t, "\x1b[=0u");
	for (size_t i = ARRAY_LEN(modes); i-- > 0;) {
		if (s->changed >> i & 1)
			text_mode(&t, i, modes[i].on);
	}
	return t.n;
}

size_t screen_redo(const struct screen *s, char to[SCREEN_TEXT_MAX])
{
	struct text t = { to, 0 };

	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		if (s->changed >> i & 1)
			text_mode(&t, i, !modes[i].on);
	}
	if (s->keypad)
		text_add(&t, "\x1b=");
	if (s->cursor)
		text_add(&t, "\x1b[%u q", s->cursor);
	if (s->other_keys)
		text_add(&t, "\x1b[>4;%um", s->other_keys);
	for (unsigned i = 0; i < s->keyboards; i++)
		text_add(&t, "\x1b[>%uu", s->keyboard);
	if (!s->keyboards && s->keyboard)
		text_add(&t, "\x1b[=%uu", s->keyboard);
	return t.n;
}
