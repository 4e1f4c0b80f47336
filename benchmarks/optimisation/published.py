"""Results of Oh et al. (2021) on the problems that the suite has without changes."""

PUBLISHED = {
    "func2c": {
        "ModLap": (-0.2063, 0.0000),
        "ProdLap": (-0.2060, 0.0001),
        "AddLap": (-0.1669, 0.0127),
        "ModDif": (-0.0662, 0.0463),
        "CoCaBO-0.5": (-0.2025, 0.0018),
        "TPE": (-0.1917, 0.0053),
        "SMAC": (0.0060, 0.0387),
    },
    "func3c": {
        "ModLap": (-0.7215, 0.0004),
        "ProdLap": (-0.7213, 0.0005),
        "AddLap": (-0.3156, 0.1125),
        "ModDif": (-0.0977, 0.0742),
        "CoCaBO-0.5": (-0.7202, 0.0016),
        "TPE": (-0.4068, 0.1204),
        "SMAC": (0.1194, 0.0723),
    },
    "ackley5c": {
        "ModLap": (0.0186, 0.0057),
        "ProdLap": (0.0177, 0.0038),
        "AddLap": (0.0042, 0.0018),
        "ModDif": (0.0008, 0.0003),
        "CoCaBO-0.5": (1.3720, 0.2110),
        "TPE": (1.8601, 0.1248),
        "SMAC": (2.3809, 0.1648),
    },
    "nusvr": {
        "ModLap": (4.1864, 0.0015),
        "ProdLap": (4.1856, 0.0012),
        "AddLap": (4.5600, 0.2014),
        "ModDif": (4.1876, 0.0012),
        "CoCaBO-0.5": (4.1957, 0.0040),
        "TPE": (4.3986, 0.1632),
        "SMAC": (4.7588, 0.1414),
    },
}
"""Mean and standard error of the best value after 200 evaluations, over five runs (supplement, sections 5.1 to 5.4)."""
