"""The contract of everything that finds things in text, and those who keep it: reader, lexicon, learned, prompted."""
