#pragma once
/* Identifiers that can't be guessed: a prefix and 128 bits of the kernel's randomness in hex. */

enum { ID_MAX = 48 };

/* Fills id with "PREFIX-" and 32 hex digits; the prefix has at most 12 characters. Never fails:
 * without randomness the process ends, since nothing safe can follow. */
void id_make(char id[ID_MAX], const char *prefix);
