"""ImageNet at 32 x 32 pixels (Chrabaszcz, Loshchilov, Hutter 2017, arXiv:1707.08819): the official
batches.

Ten training batches `train_data_batch_1` ... `train_data_batch_10` and `val_data`, the test split
here: pickles of a dictionary of `data` (n, 3072) uint8, red then green then blue, and `labels` from
1 to 1000; the training batches' `mean` is not read. The images are shuffled over the batches. The
release numbers its classes as the ILSVRC devkit's map_clsloc.txt does (1 kit fox, 2 English setter,
...); here they are in the order of their WordNet ids (0 tench, 1 goldfish, ...), as in an
ImageFolder, in torchvision and in timm, because FedSA's authors cut their ten blocks of 100 classes
in that order.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from datasets.folders import all_of, beside, whole
from datasets.source import DataError, DataSource, Split
from datasets.sources.cifar import read_batch

TRAIN_PARTS = tuple(f"train_data_batch_{number}" for number in range(1, 11))
TEST_PART = "val_data"
TRAIN, TEST, BOTH = "Imagenet32_train", "Imagenet32_val", "Imagenet32"
"""Where the two archives may be unpacked: each in a folder of its name, or both in one."""

_PLACES = """
278 212 250 193 217 147 387 285 350 283 286 353 334 150 249 362 246 166 218 172 177 148 357 386 178
202 194 271 229 290 175 163 191 276 299 197 380 364 339 359 251 165 157 361 179 268 233 356 266 264
225 349 335 375 282 204 352 272 187 256 294 277 174 234 351 176 280 223 154 262 203 190 370 298 384
292 170 342 241 340 348 245 365 253 288 239 153 185 158 211 192 382 224 216 284 367 228 160 152 376
338 270 296 366 169 265 183 345 199 244 381 236 195 238 240 155 221 259 181 343 354 369 196 231 207
184 252 232 331 242 201 162 255 210 371 274 372 373 209 243 222 378 254 206 186 205 341 261 248 215
267 189 289 214 273 198 333 200 279 188 161 346 295 332 347 379 344 260 388 180 230 257 151 281 377
208 247 363 258 164 168 358 336 227 368 355 237 330 171 291 219 213 149 385 337 220 263 156 383 159
287 275 374 173 269 293 167 226 297 182 235 360 105 101 102 104 103 106 763 879 780 805 401 310 327
117 579 620 949 404 895 405 417 812 554 576 814 625 472 914 484 871 510 628 724 403 833 913 586 847
657 450 537 444 671 565 705 428 791 670 561 547 820 408 407 436 468 511 609 627 656 661 751 817 573
575 665 803 555 569 717 864 867 675 734 757 829 802 866 660 870 880 603 612 690 431 516 520 564 453
495 648 493 846 553 703 423 857 559 765 831 861 526 736 532 548 894 948 950 951 952 953 954 955 956
957 988 989 998 984 987 990 687 881 494 541 577 641 642 822 420 486 889 594 402 546 513 566 875 593
684 699 432 683 776 558 985 986 972 979 970 980 976 977 973 975 978 974 596 499 623 726 740 621 587
512 473 731 784 792 730 491 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 80 81 82 83 84 85 86
87 88 89 90 91 92 93 94 95 96 97 98 99 100 127 128 129 130 132 131 133 134 135 137 138 139 140 141
142 143 136 144 145 146 2 3 4 5 6 389 391 0 1 390 392 393 396 397 394 395 33 34 35 36 37 38 39 40 41
42 43 44 45 46 47 48 51 49 50 52 53 54 55 56 57 58 59 60 61 62 63 64 65 66 67 68 25 26 27 28 29 30
31 32 902 908 696 589 691 801 632 650 782 673 545 686 828 811 827 583 426 769 685 778 409 530 892
604 835 704 826 531 823 845 635 447 745 837 633 755 456 471 413 764 744 508 878 517 626 398 480 798
527 590 681 916 595 856 742 800 886 786 613 844 600 479 694 723 739 571 476 843 758 753 746 592 836
714 475 807 761 535 464 584 616 507 695 677 772 783 676 785 795 470 607 818 862 678 718 872 645 674
815 69 70 71 72 73 74 75 76 77 78 79 126 118 119 120 121 122 123 124 125 300 301 302 303 304 305 306
307 308 309 311 312 313 314 315 316 317 318 319 320 321 322 323 324 325 326 107 108 109 110 111 112
113 114 115 116 328 329 606 550 651 544 766 859 891 882 534 760 897 521 567 909 469 505 849 813 406
873 706 821 839 888 425 580 698 663 624 410 449 497 668 832 727 762 498 598 634 506 682 863 483 743
582 415 424 454 467 509 788 860 865 562 500 915 536 458 649 421 460 525 489 716 912 825 581 799 877
672 781 599 729 708 437 935 945 936 937 938 939 940 941 942 943 944 946 947 794 608 478 591 774 412
771 923 679 522 568 855 697 770 503 492 640 662 876 868 416 931 741 614 926 901 615 921 816 796 440
518 455 858 643 638 712 560 433 850 597 737 713 887 918 574 927 834 900 552 501 966 542 787 496 601
922 819 452 962 429 551 777 838 441 996 924 619 911 958 457 636 899 463 533 809 969 666 869 693 488
840 659 964 907 789 465 540 446 474 841 738 448 588 722 709 707 925 411 747 414 982 439 710 462 669
399 667 735 523 732 810 968 752 920 749 754 961 524 652 629 793 664 688 658 459 930 883 653 768 700
995 549 655 515 874 711 435 934 991 466 721 999 481 477 618 994 631 585 400 538 519 903 965 720 490
854 905 427 896 418 430 434 514 578 904 992 487 680 422 637 617 556 654 692 646 733 602 808 715 756
893 482 917 719 919 442 563 906 890 689 775 748 451 443 701 797 851 842 647 967 963 461 790 910 773
960 981 572 993 830 898 528 804 610 779 611 728 759 529 419 929 885 852 570 539 630 928 932 750 639
848 502 605 997 983 725 644 445 806 485 622 853 884 438 971 933 702 557 504 767 824 959 543
"""

WORDNET_PLACE = np.array(_PLACES.split(), dtype=np.int64)
"""The place of the release's classes 1 to 1000 among the thousand WordNet ids in ascending
order."""

_HOW = (
    "Register at https://image-net.org, accept its terms, download the 32x32 images of downsampled"
    " ImageNet (train and val, as batches for Python, not npz) and unpack Imagenet32_train.zip and"
    " Imagenet32_val.zip into Imagenet32_train/ (ten files) and Imagenet32_val/ (val_data) in the"
    " data home."
)


def read_batches(paths: Sequence[Path], size: int) -> Split:
    """The `size` images of the batches `paths`, in order, with WordNet-ordered labels 0 to 999.

    One batch is held at a time beside the whole. Raises DataError if a batch is damaged, or the
    batches hold fewer or more images.
    """
    images, labels = np.empty((size, 3, 32, 32), np.uint8), np.empty(size, np.int64)
    filled = 0
    for path in paths:
        try:
            part, numbers = read_batch(path, "labels")
        except (DataError, OSError) as error:
            raise DataError(
                f"{path} is not a whole batch of ImageNet 32x32: {error.__cause__ or error}. Get it"
                f" again. {_HOW}"
            ) from error
        if part.dtype != np.uint8 or numbers.shape != (len(part),) or not len(part):
            raise DataError(
                f"{path} holds {part.dtype} images {part.shape} and labels {numbers.shape}. Get it"
                f" again. {_HOW}"
            )
        if numbers.min() < 1 or numbers.max() > len(WORDNET_PLACE):
            raise DataError(
                f"{path} has labels {numbers.min()} to {numbers.max()}, expected 1 to 1000. Get it"
                f" again. {_HOW}"
            )
        end = filled + len(part)
        if end <= size:
            images[filled:end], labels[filled:end] = part, WORDNET_PLACE[numbers - 1]
        filled = end
    if filled != size:
        raise DataError(
            f"the batches in {paths[0].parent} hold {filled:,} images, expected {size:,}. Get them"
            f" again. {_HOW}"
        )
    return Split(images, labels)


def _files(home: Path) -> list[Path]:
    """The ten files and the one, or none. Raises DataError for some of them."""

    def files(folder: Path) -> list[Path]:
        both = folder.name.lower() == BOTH.lower()
        train, test = (folder if both else beside(home, folder, name) for name in (TRAIN, TEST))
        wanted = [*(train / part for part in TRAIN_PARTS), test / TEST_PART]
        return all_of("ImageNet 32x32", [[path] for path in wanted], _HOW)

    return whole("ImageNet 32x32", home, (TRAIN, TEST, BOTH), files, _HOW) or []


def data_source(train: int = 1_281_167, test: int = 50_000) -> DataSource:
    """The data set, of which `train` and `test` images are expected."""

    def load(home: Path) -> dict[str, Split]:
        parts = _files(home)
        return {"train": read_batches(parts[:-1], train), "test": read_batches(parts[-1:], test)}

    return DataSource(
        name="imagenet32",
        title="ImageNet 32x32",
        classes=len(WORDNET_PLACE),
        shape=(3, 32, 32),
        sizes={"train": train, "test": test},
        mean=(0.4811, 0.4575, 0.4079),  # the values in public use for this release
        std=(0.2604, 0.2532, 0.2682),
        licence=(
            "ImageNet's terms of access: non-commercial research and education; cite Chrabaszcz et"
            " al. 2017"
        ),
        how_to_get=_HOW,
        files=_files,
        load=load,
        stand_ins=("cifar100", "cifar100-16", "caltech100", "shapes-100-shifted"),
    )


SOURCES = [data_source()]
