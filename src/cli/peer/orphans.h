#pragma once
/* Finds processes that our child processes left behind, in whatever session. */

/* From now on orphans become children of this process. */
void orphans_adopt(void);
/* Kills all children of this process and their descendants, and waits for them. */
void orphans_kill(void);
