#pragma once
/* Processes that what was started here has left behind, whatever session they have made for themselves. */

/* From here on they become children of this process, which alone can see them. */
void orphans_adopt(void);
/* Kills all children of this process, and theirs, and waits for them. None may be wanted any more. */
void orphans_kill(void);
