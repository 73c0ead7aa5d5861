#pragma once
/* BLAKE2b-256 (RFC 7693) of bytes that begin with one that tells their kind. */
#include <stddef.h>
#include <stdint.h>

enum { BLAKE2B_BYTES = 32, BLAKE2B_HEX = 64 };

void blake2b(char kind, const void *p, size_t n, uint8_t ret[BLAKE2B_BYTES]);
void blake2b_hex(const uint8_t hash[BLAKE2B_BYTES], char ret[BLAKE2B_HEX + 1]);
/* -1: text is not 64 lower-case hexadecimal digits. */
int blake2b_of_hex(const char *text, size_t n, uint8_t ret[BLAKE2B_BYTES]);
