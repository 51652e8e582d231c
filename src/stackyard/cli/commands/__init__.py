"""One file for each noun or verb of the command line, loaded only when it is used."""
