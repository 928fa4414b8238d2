"""svmlight text: finding and decompressing files, and parsing them strictly, in parallel, at memory speed."""
