#pragma once
/*
 * What a program has set of a terminal, known by its output alone: modes of DEC and xterm
 * (alternate screen, mouse, bracketed paste, hidden cursor), protocols of keyboards, a scrolling
 * region. Who detaches from the program leaves the terminal as it was before; who attaches again
 * sets them as the program believes them to be. No I/O here.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SCREEN_MODES = 32, /* at most */
	SCREEN_PARAMS_MAX = 48, /* characters between CSI and its last one */
	SCREEN_TEXT_MAX = 768, /* of screen_undo() and screen_redo() */
};

enum screen_state {
	SCREEN_GROUND,
	SCREEN_ESCAPE,
	SCREEN_BETWEEN, /* ESC and an intermediate */
	SCREEN_CSI,
	SCREEN_STRING, /* OSC, DCS and others, to BEL or ST */
	SCREEN_STRING_ESCAPE,
};

/* Zeroed: a fresh terminal. */
struct screen {
	enum screen_state state;
	char params[SCREEN_PARAMS_MAX];
	size_t n_params;
	unsigned rest; /* bytes that a character of UTF-8 still lacks */
	uint32_t changed; /* a bit for each mode that is not as at first */
	unsigned keyboards; /* pushed by the kitty protocol */
	unsigned keyboard; /* its flags */
	unsigned other_keys; /* of modifyOtherKeys */
	unsigned cursor; /* its style */
	bool keypad, region, saved; /* saved: the cursor, and not restored since */
	bool touched; /* the region was reset, or the screen replaced; the caller clears it */
};

void screen_feed(struct screen *s, const char *p, size_t n);

/* The program draws on the alternate screen, behind which the other one stays as it was. */
bool screen_is_alternate(const struct screen *s);

/* Between two sequences, and nothing is lost where the cursor is saved and restored now. */
bool screen_is_idle(const struct screen *s);

/* The sequences that bring a terminal back, or that bring a fresh one there. Returns their
 * length. */
size_t screen_undo(const struct screen *s, char to[SCREEN_TEXT_MAX]);
size_t screen_redo(const struct screen *s, char to[SCREEN_TEXT_MAX]);
