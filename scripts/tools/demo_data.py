"""demo_data.py FOLDER: write breast_cancer, real data that scikit-learn ships, as train.svm and test.svm (a quarter of the rows),
and its digits, of ten classes, as digits.svm.

Labels are +1 (benign) and -1 (malignant). Columns are divided by their largest absolute value in train.svm: their scales
differ by a factor of 100,000, and a linear SVM regularises all weights alike.
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import dump_svmlight_file, load_breast_cancer, load_digits
from sklearn.model_selection import train_test_split

folder = Path(sys.argv[1])
X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, 2 * y - 1, test_size=0.25, random_state=0)
scale = np.abs(X_train).max(axis=0)
dump_svmlight_file(X_train / scale, y_train, str(folder / "train.svm"), zero_based=False)
dump_svmlight_file(X_test / scale, y_test, str(folder / "test.svm"), zero_based=False)
print(f"{len(y_train)} training rows and {len(y_test)} test rows with {X.shape[1]} features in {folder}")
digits, digit = load_digits(return_X_y=True)
dump_svmlight_file(digits / 16, digit, str(folder / "digits.svm"), zero_based=False)
