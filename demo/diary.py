"""Writes a line into a diary and shows the diary.
Runs inside the sandboxes of the demonstration."""
import os
import sys

with open('diary.txt', 'a', encoding='utf-8') as diary:
    diary.write(' '.join(sys.argv[1:]) + '\n')
with open('diary.txt', encoding='utf-8') as diary:
    print(f'{os.uname().nodename}, process {os.getpid()}:',
          ', '.join(line.strip() for line in diary))
