"""What readers of tree ensembles share: features, splits and the builder of trees."""
