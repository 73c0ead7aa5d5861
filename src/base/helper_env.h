#pragma once
/*
 * The environment of a helper of the hub: what it and its libraries look at, and nothing else of
 * the hub's, which may have secrets. Each helper starts with it.
 */
enum { HELPER_ENV_MAX = 32 };

/* Borrowed from the environment of this process; ends with NULL. */
void helper_env(char *to[HELPER_ENV_MAX + 1]);
