# Writes calibration.json: what scikit-learn makes of margins, labels and weights. python3 calibration.py (scikit-learn 1.9)
import json
import numpy as np
from sklearn.calibration import _SigmoidCalibration
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss, log_loss

rng = np.random.default_rng(1)
n = 300
z = np.round(rng.normal(0, 3, n), 1)  # with ties
y = (rng.random(n) < 1 / (1 + np.exp(-(0.7 * z - 0.5)))).astype(float)
w = rng.integers(1, 4, n).astype(float)
grid = np.linspace(-9, 9, 37)
s = _SigmoidCalibration().fit(z, y, w)
i = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(z, y, w)
p = s.predict(z)
json.dump({"z": z.tolist(), "y": y.tolist(), "w": w.tolist(), "grid": grid.tolist(), "sigmoid": s.predict(grid).tolist(),
           "isotonic": i.predict(grid).tolist(), "brier": brier_score_loss(y, p, sample_weight=w),
           "log_loss": log_loss(y, p, sample_weight=w)}, open("calibration.json", "w"))
