#pragma once
/* Removes a program's temporary files when a signal ends it. */

/* Where an interrupt, an end or a closed pipe ends the program, calls tidy() first, which may do
 * what a signal handler may. NULL: nothing is to be done any more. */
void tidy_set(void (*tidy)(void));
