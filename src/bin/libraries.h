#pragma once

/* Gives base/library.h the libraries that `holt` loads when it needs them. */
void libraries_init(void);
