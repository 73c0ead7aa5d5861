// What every hub can run.
1 + 1
